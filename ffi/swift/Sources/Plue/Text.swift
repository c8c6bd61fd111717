import CPlue

/// Says no to strings that C would read as shorter ones.
func checkText(_ texts: String?...) throws {
    for case let text? in texts where text.utf8.contains(0) {
        throw ToolError(.invalidArgument, "Cannot pass a string to libplue: it has a NUL")
    }
}

func withOptionalCString<Result>(
    _ text: String?, _ body: (UnsafePointer<CChar>?) throws -> Result
) rethrows -> Result {
    guard let text else { return try body(nil) }
    return try text.withCString(body)
}

/// Copies a string that was returned to be freed, and frees it.
func take(_ json: UnsafeMutablePointer<CChar>?) -> String {
    guard let json else { return "" }
    defer { plue_free_json(json) }
    return String(cString: json)
}
