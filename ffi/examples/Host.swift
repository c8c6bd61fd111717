// A host in Swift: Host [tool [params_json]]
//
//   swiftc Host.swift -I ../include -L ../build -lplue -Xlinker -rpath -Xlinker ../build

import CPlue
import Foundation

let arguments = CommandLine.arguments
let tool = arguments.count > 1 ? arguments[1] : "echo"
let params = arguments.count > 2 ? arguments[2] : "{}"

guard plue_abi_version() == PLUE_ABI_VERSION, plue_init("{}") == 0 else {
    print(String(cString: plue_get_last_error()))
    exit(1)
}

if let list = plue_tool_list() {
    print("tools: \(String(cString: list).prefix(70))...")
    plue_free_json(list)
}

// A call blocks until the tool has ended: not for the main thread of an app.
var context = plue_tool_context_t()
context.metadata_callback = { json, _ in
    if let json {
        FileHandle.standardError.write(Data("event: \(String(cString: json))\n".utf8))
    }
}
var json: UnsafeMutablePointer<CChar>?
let status = plue_tool_call(tool, params, &context, &json)
if let json {
    print("\(status == 0 ? "result" : "failure"): \(String(cString: json))")
    plue_free_json(json)
}
plue_shutdown()
exit(status == 0 ? 0 : 1)
