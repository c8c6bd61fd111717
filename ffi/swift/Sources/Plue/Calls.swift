import CPlue

/// What goes with a call. All of it may be left out.
public struct CallOptions: Sendable {
    public var sessionID: String?
    public var messageID: String?
    /// Is called with the JSON of each event of the running tool, before the end of the call.
    public var onEvent: (@Sendable (String) -> Void)?

    public init(
        sessionID: String? = nil, messageID: String? = nil,
        onEvent: (@Sendable (String) -> Void)? = nil
    ) {
        self.sessionID = sessionID
        self.messageID = messageID
        self.onEvent = onEvent
    }

    /// Calls `body` with the context for C, which it may use until it returns.
    func withContext<Result>(
        _ signal: AbortSignal?, _ body: (inout plue_tool_context_t) throws -> Result
    ) throws -> Result {
        try checkText(sessionID, messageID)
        return try withOptionalCString(sessionID) { sessionID in
            try withOptionalCString(messageID) { messageID in
                var context = plue_tool_context_t()
                context.session_id = sessionID
                context.message_id = messageID
                context.abort_signal = signal?.pointer
                return try withExtendedLifetime(signal) { try body(&context) }
            }
        }
    }
}

/// The result of a call.
public struct Answer: Sendable {
    public let json: String
    /// Whether the result is texts, images, audio and files, in the form that plue.h shows.
    public let hasBlocks: Bool

    /// The result of this thread's last call, or of the one that is told of.
    init(_ json: String) {
        self.json = json
        hasBlocks = Int(plue_get_last_result_flags()) & PLUE_RESULT_BLOCKS != 0
    }
}

/// Carries a closure through C.
private final class Listener {
    let onEvent: @Sendable (String) -> Void
    init(_ onEvent: @escaping @Sendable (String) -> Void) { self.onEvent = onEvent }
}

/// A call that a task waits for.
private final class Started {
    let onEvent: (@Sendable (String) -> Void)?
    let continuation: CheckedContinuation<Answer, any Error>

    init(
        _ onEvent: (@Sendable (String) -> Void)?,
        _ continuation: CheckedContinuation<Answer, any Error>
    ) {
        self.onEvent = onEvent
        self.continuation = continuation
    }
}

extension Plue {
    /// A function of `plue.h` that waits for an answer, and one that does not.
    private typealias Wait = (
        String, String, UnsafePointer<plue_tool_context_t>, inout UnsafeMutablePointer<CChar>?
    ) -> Int32
    private typealias Submit = (
        String, String, UnsafePointer<plue_tool_context_t>, plue_done_t, UnsafeMutableRawPointer
    ) -> Int32

    /// Calls a tool, and blocks this thread until it has ended: not for the main thread, nor for tasks.
    public static func callAndWait(
        _ tool: String, _ params: String = "{}", _ options: CallOptions = CallOptions(),
        signal: AbortSignal? = nil
    ) throws -> Answer {
        try wait(tool, params, options, signal) { plue_tool_call($0, $1, $2, &$3) }
    }

    /// Continues a call that failed with `inputRequired`, by the ticket in the JSON of that failure, and
    /// blocks as `callAndWait`. The answers are an object with an answer by each question's key:
    /// `{"sure":{"action":"accept"}}`.
    public static func resumeAndWait(
        _ ticket: String, _ answers: String, _ options: CallOptions = CallOptions(),
        signal: AbortSignal? = nil
    ) throws -> Answer {
        try wait(ticket, answers, options, signal) { plue_tool_resume($0, $1, $2, &$3) }
    }

    /// Starts a task of the tools': a call with a life of its own. Returns how it is, as JSON with its
    /// `id`. This and the functions below block until the answer is there, and not for the task.
    public static func startTask(
        _ tool: String, _ params: String = "{}", _ options: CallOptions = CallOptions()
    ) throws -> String {
        try wait(tool, params, options, nil) { plue_tool_start($0, $1, $2, &$3) }.json
    }

    /// How a task is.
    public static func pollTask(_ id: String) throws -> String {
        try wait(id, "", CallOptions(), nil) { id, _, _, json in plue_tool_poll(id, &json) }.json
    }

    /// Cancels a task, unless it has ended.
    public static func cancelTask(_ id: String) throws -> String {
        try wait(id, "", CallOptions(), nil) { id, _, _, json in plue_tool_cancel(id, &json) }.json
    }

    /// Answers the questions of a task, as `resume` does it.
    public static func answerTask(_ id: String, _ answers: String) throws -> String {
        try wait(id, answers, CallOptions(), nil) { plue_tool_answer($0, $1, $2, &$3) }.json
    }

    private static func wait(
        _ first: String, _ second: String, _ options: CallOptions, _ signal: AbortSignal?,
        _ function: Wait
    ) throws -> Answer {
        try checkText(first, second)
        let listener = options.onEvent.map { Listener($0) }
        return try options.withContext(signal) { context in
            if let listener {
                context.user_data = Unmanaged.passUnretained(listener).toOpaque()
                context.metadata_callback = { json, userData in
                    guard let json, let userData else { return }
                    let listener = Unmanaged<Listener>.fromOpaque(userData).takeUnretainedValue()
                    listener.onEvent(String(cString: json))
                }
            }
            var json: UnsafeMutablePointer<CChar>?
            let status = withExtendedLifetime(listener) {
                function(first, second, &context, &json)
            }
            let text = take(json)
            guard status == 0 else { throw ToolError(status: status, json: text) }
            return Answer(text)
        }
    }

    /// Calls a tool without a thread for it. When the task is cancelled, the call is aborted, and this
    /// throws a `CancellationError`.
    public static func call(
        _ tool: String, _ params: String = "{}", _ options: CallOptions = CallOptions()
    ) async throws -> Answer {
        try await submit(tool, params, options) { plue_tool_submit($0, $1, $2, $3, $4) }
    }

    /// `resumeAndWait`, as `call` does it.
    public static func resume(
        _ ticket: String, _ answers: String, _ options: CallOptions = CallOptions()
    ) async throws -> Answer {
        try await submit(ticket, answers, options) { plue_tool_submit_resume($0, $1, $2, $3, $4) }
    }

    private static func submit(
        _ first: String, _ second: String, _ options: CallOptions, _ function: Submit
    ) async throws -> Answer {
        try checkText(first, second)
        _ = dispatcher
        let signal = AbortSignal()
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    begin(first, second, options, signal, continuation, function)
                }
            } onCancel: {
                signal.abort("its task was cancelled")
            }
        } catch let error as ToolError where error.code == .aborted && Task.isCancelled {
            throw CancellationError()
        }
    }

    private static func begin(
        _ first: String, _ second: String, _ options: CallOptions, _ signal: AbortSignal,
        _ continuation: CheckedContinuation<Answer, any Error>, _ function: Submit
    ) {
        let started = Unmanaged.passRetained(Started(options.onEvent, continuation))
        do {
            try options.withContext(signal) { context in
                context.user_data = started.toOpaque()
                if options.onEvent != nil {
                    context.metadata_callback = { json, userData in
                        guard let json, let userData else { return }
                        let started = Unmanaged<Started>.fromOpaque(userData).takeUnretainedValue()
                        started.onEvent?(String(cString: json))
                    }
                }
                let status = function(
                    first, second, &context,
                    { status, json, userData in
                        guard let json, let userData else { return }
                        let started = Unmanaged<Started>.fromOpaque(userData).takeRetainedValue()
                        let text = String(cString: json)
                        if status == 0 {
                            started.continuation.resume(returning: Answer(text))
                        } else {
                            started.continuation.resume(
                                throwing: ToolError(status: status, json: text))
                        }
                    }, started.toOpaque())
                try check(status)
            }
        } catch {
            // It has not begun, so that its end is not told.
            started.release()
            continuation.resume(throwing: error)
        }
    }
}
