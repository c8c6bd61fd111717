import CPlue
import Foundation

/// What is done when a running call is aborted, by the number that C carries for it: libplue does not
/// say when it needs one no more.
private final class AbortActions: @unchecked Sendable {
    static let shared = AbortActions()
    private let lock = NSLock()
    private var last: UInt = 0
    private var actions: [UInt: @Sendable () -> Void] = [:]

    func keep(_ action: @escaping @Sendable () -> Void) -> UInt {
        lock.lock()
        defer { lock.unlock() }
        last += 1
        actions[last] = action
        return last
    }

    func take(_ number: UInt) -> (@Sendable () -> Void)? {
        lock.lock()
        defer { lock.unlock() }
        return actions.removeValue(forKey: number)
    }
}

/// One call of a tool of this program. What is said after its end is dropped.
public final class Invocation: @unchecked Sendable {
    public let sessionID: String?
    public let messageID: String?
    /// Is aborted when the call is: a long function looks now and then.
    public let signal: AbortSignal
    private let lock = NSLock()
    private var pointer: OpaquePointer?
    private var abortAction: UInt = 0

    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
        sessionID = plue_invocation_session_id(pointer).map { String(cString: $0) }
        messageID = plue_invocation_message_id(pointer).map { String(cString: $0) }
        signal = AbortSignal(retaining: plue_invocation_signal(pointer))
    }

    /// Sends something about the running call to its caller, as JSON.
    public func metadata(_ json: String) {
        say { plue_invocation_metadata($0, json) }
    }

    /// Sends a part of the output, as JSON.
    public func output(_ json: String) {
        say { plue_invocation_output($0, json) }
    }

    /// Says how far it is; `total` 0 is unknown.
    public func progress(_ done: Double, of total: Double = 0, _ message: String? = nil) {
        say { pointer in
            withOptionalCString(message) { plue_invocation_progress(pointer, done, total, $0) }
        }
    }

    private func say(_ speak: (OpaquePointer) -> Void) {
        lock.lock()
        defer { lock.unlock() }
        if let pointer {
            speak(pointer)
        }
    }

    private func takePointer() -> OpaquePointer? {
        lock.lock()
        defer { lock.unlock() }
        defer { pointer = nil }
        _ = AbortActions.shared.take(abortAction)
        return pointer
    }

    /// Has `action` done if the call is aborted before it has ended.
    func onAbort(_ action: @escaping @Sendable () -> Void) {
        say { pointer in
            abortAction = AbortActions.shared.keep(action)
            plue_invocation_on_abort(
                pointer,
                { _, userData in
                    AbortActions.shared.take(UInt(bitPattern: userData))?()
                }, UnsafeMutableRawPointer(bitPattern: abortAction))
        }
    }

    func succeed(_ json: String) {
        if let pointer = takePointer() {
            plue_invocation_succeed(pointer, json)
        }
    }

    func fail(_ error: any Error) {
        guard let pointer = takePointer() else { return }
        let known = error as? ToolError
        let code = known?.code ?? (error is CancellationError ? .aborted : .threw)
        plue_invocation_fail(pointer, code.rawValue, known?.message ?? "\(error)")
    }
}

/// A tool of this program, as C carries it.
private final class Tool {
    let run: (Invocation, String) -> Void
    init(_ run: @escaping (Invocation, String) -> Void) { self.run = run }
}

/// Runs the `Tool` that `userData` is.
private let execute: plue_execute_t = { pointer, json, userData in
    guard let pointer, let json, let userData else { return }
    let tool = Unmanaged<Tool>.fromOpaque(userData).takeUnretainedValue()
    tool.run(Invocation(pointer), String(cString: json))
}

private let destroy: @convention(c) (UnsafeMutableRawPointer?) -> Void = { userData in
    guard let userData else { return }
    Unmanaged<Tool>.fromOpaque(userData).release()
}

extension Plue {
    /// Registers a tool that this program runs. `run` gets the JSON of the parameters, which fit their
    /// schema, and returns that of the result; what it throws ends the call, a `ToolError` with its
    /// code. It runs on the thread that calls the tool by `callAndWait`, and otherwise on the library's
    /// own. Waits until the tools have started, and have taken this one.
    public static func register(
        _ definitionJSON: String, _ run: @escaping @Sendable (Invocation, String) throws -> String
    ) throws {
        try register(definitionJSON, ending(run))
    }

    /// Answers the questions of tools. `run` gets the JSON of a question where a tool would run, and
    /// returns that of an answer: `{"action":"accept","content":...}`, `{"action":"decline"}` or
    /// `{"action":"cancel"}`. The kind `client` wants the result of a tool that this program runs. When
    /// it throws, or with `nil`, the call fails with `inputRequired`.
    public static func setQuestion(
        _ run: (@Sendable (Invocation, String) throws -> String)?
    ) throws {
        guard let run else {
            try check(plue_set_question(nil, nil, nil))
            return
        }
        _ = dispatcher
        // libplue gives the reference back, also when this fails.
        let userData = Unmanaged.passRetained(ending(run)).toOpaque()
        try check(plue_set_question(execute, destroy, userData))
    }

    private static func ending(
        _ run: @escaping @Sendable (Invocation, String) throws -> String
    ) -> Tool {
        Tool { invocation, json in
            do {
                let result = try run(invocation, json)
                try checkText(result)
                invocation.succeed(result)
            } catch {
                invocation.fail(error)
            }
        }
    }

    /// Registers a tool that runs in a task. The task is cancelled when its call is aborted.
    public static func registerAsync(
        _ definitionJSON: String,
        _ run: @escaping @Sendable (Invocation, String) async throws -> String
    ) throws {
        try register(
            definitionJSON,
            Tool { invocation, params in
                let task = Task {
                    do {
                        let result = try await run(invocation, params)
                        try checkText(result)
                        invocation.succeed(result)
                    } catch {
                        invocation.fail(error)
                    }
                }
                invocation.onAbort { task.cancel() }
            })
    }

    private static func register(_ definitionJSON: String, _ tool: Tool) throws {
        try checkText(definitionJSON)
        _ = dispatcher
        // libplue gives the reference back, also when this fails.
        let userData = Unmanaged.passRetained(tool).toOpaque()
        try check(plue_register_tool(definitionJSON, execute, destroy, userData))
    }

    /// Takes back a tool of this program, by its id. Running invocations go on.
    public static func unregister(_ toolID: String) throws {
        try checkText(toolID)
        try check(plue_unregister_tool(toolID))
    }
}
