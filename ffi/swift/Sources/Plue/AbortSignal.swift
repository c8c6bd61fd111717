import CPlue

/// Stops the calls that carry it, from any thread.
public final class AbortSignal: @unchecked Sendable {
    let pointer: OpaquePointer

    public init() {
        guard let pointer = plue_abort_signal_new() else { fatalError("out of memory") }
        self.pointer = pointer
    }

    init(retaining signal: OpaquePointer) {
        pointer = plue_abort_signal_retain(signal)
    }

    deinit {
        plue_abort_signal_release(pointer)
    }

    /// Aborts the running calls and all later ones. Never waits. The first reason wins.
    public func abort(_ reason: String? = nil) {
        withOptionalCString(reason) { plue_abort_signal_abort(pointer, $0) }
    }

    public var isAborted: Bool { plue_abort_signal_aborted(pointer) != 0 }
}
