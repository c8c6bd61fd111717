import CPlue
import Foundation

/// The tools of the registry that libplue reaches. Any thread may use it.
public enum Plue {
    /// How the tools are started. What is `nil` or zero has the default of `plue_options_t`.
    public struct Options: Sendable {
        /// The TypeScript module that exports the registry.
        public var toolsModule: String?
        /// Which tools this program sees, and how they are configured.
        public var configJSON: String?
        /// The program that runs the tools, and its arguments.
        public var sidecar: [String] = []
        public var sidecarFolder: String?
        public var startTimeoutMilliseconds: UInt32 = 0
        public var abortGraceMilliseconds: UInt32 = 0
        public var callTimeoutMilliseconds: UInt32 = 0

        public init() {}
    }

    /// Says how the tools are started. The first call of anything starts them.
    public static func initialize(_ options: Options = Options()) throws {
        guard plue_abi_version() == PLUE_ABI_VERSION else {
            throw ToolError(.runtimeUnavailable, "libplue has another ABI version")
        }
        try checkText(options.toolsModule, options.configJSON, options.sidecarFolder)
        for word in options.sidecar {
            try checkText(word)
        }
        let words = options.sidecar.map { strdup($0) }
        defer { words.forEach { free($0) } }
        let argv: [UnsafePointer<CChar>?] = words.map { UnsafePointer<CChar>($0) } + [nil]
        let status = withOptionalCString(options.toolsModule) { toolsModule in
            withOptionalCString(options.configJSON) { configJSON in
                withOptionalCString(options.sidecarFolder) { sidecarFolder in
                    argv.withUnsafeBufferPointer { argv in
                        var given = plue_options_t()
                        given.struct_size = MemoryLayout<plue_options_t>.size
                        given.tools_module = toolsModule
                        given.config_json = configJSON
                        given.sidecar_argv = words.isEmpty ? nil : argv.baseAddress
                        given.sidecar_cwd = sidecarFolder
                        given.start_timeout_ms = options.startTimeoutMilliseconds
                        given.abort_grace_ms = options.abortGraceMilliseconds
                        given.call_timeout_ms = options.callTimeoutMilliseconds
                        return plue_init_with_options(&given)
                    }
                }
            }
        }
        if status != 0 {
            throw ToolError.last(Code.invalidArgument.rawValue)
        }
    }

    /// Starts the tools, and waits until they are ready. Optional.
    public static func start() throws {
        try check(plue_start())
    }

    /// Fails every running call, and ends the tools. A later call starts them again. Where the library
    /// was initialised several times, with equal options, the last `shutdown()` does so.
    public static func shutdown() {
        plue_shutdown()
    }

    /// Lists the tools that this program may call, as JSON: their definitions by their names.
    public static func tools() throws -> String {
        let list = take(plue_tool_list())
        let failure = ToolError.last(Code.other.rawValue)
        if failure.json != "{}" {
            try start()  // has the status
            throw failure
        }
        return list
    }

    /// The thread that tells what libplue has to tell: the ends of calls, and calls of tools in Swift.
    static let dispatcher: Void = Thread.detachNewThread {
        while plue_events_dispatch(-1) >= 0 {}
    }
}
