// A host in Swift: Host [tool [params_json]]
//
//   swiftc Host.swift -I ../include -L ../build -lplue -Xlinker -rpath -Xlinker ../build

import CPlue
import Foundation

struct ToolError: Error {
    let message: String
    let json: String
}

/// Carries a closure through a C pointer.
private final class Box {
    let onEvent: (String) -> Void
    init(_ onEvent: @escaping (String) -> Void) { self.onEvent = onEvent }
}

/// Calls tools. Any thread may use it.
enum Plue {
    /// Takes over a string that the library returned.
    private static func take(_ json: UnsafeMutablePointer<CChar>?) throws -> String {
        guard let json else { throw ToolError(message: "No answer", json: "{}") }
        defer { plue_free_json(json) }
        let failure = String(cString: plue_get_last_error_json())
        if failure != "{}" {
            throw ToolError(message: String(cString: plue_get_last_error()), json: failure)
        }
        return String(cString: json)
    }

    static func tools() throws -> String {
        try take(plue_tool_list())
    }

    /// Calls a tool, and blocks until it has ended: not for the main thread.
    static func execute(
        _ tool: String, _ params: String, onEvent: @escaping (String) -> Void
    ) throws -> String {
        let box = Box(onEvent)
        return try withExtendedLifetime(box) { () throws -> String in
            var context = plue_tool_context_t()
            context.user_data = Unmanaged.passUnretained(box).toOpaque()
            context.metadata_callback = { json, userData in
                guard let json, let userData else { return }
                let box = Unmanaged<Box>.fromOpaque(userData).takeUnretainedValue()
                box.onEvent(String(cString: json))
            }
            return try take(plue_tool_execute(tool, params, &context))
        }
    }
}

let arguments = CommandLine.arguments
let tool = arguments.count > 1 ? arguments[1] : "echo"
let params = arguments.count > 2 ? arguments[2] : "{}"
var status: Int32 = 0
do {
    guard plue_abi_version() == PLUE_ABI_VERSION, plue_init("{}") == 0 else {
        throw ToolError(message: String(cString: plue_get_last_error()), json: "{}")
    }
    print("tools: \(try Plue.tools().prefix(70))...")
    let result = try Plue.execute(tool, params) { event in
        FileHandle.standardError.write(Data("event: \(event)\n".utf8))
    }
    print("result: \(result)")
} catch let error as ToolError {
    print("failure: \(error.message)")
    status = 1
}
plue_shutdown()
exit(status)
