import CPlue
import Foundation

/// Why a call failed: the numbers of plue.h.
public enum Code: Int32, Sendable {
    case unknownTool = 1
    case unavailable = 2
    case denied = 3
    case notExecutable = 4
    /// What a tool was called with does not fit its schema.
    case invalidArguments = 5
    case invalidResult = 6
    case approvalRequired = 7
    case aborted = 8
    case timeout = 9
    case transactionFailed = 10
    case outputTooLarge = 11
    case overloaded = 12
    case threw = 13
    case inputRequired = 14
    case inputUnavailable = 15
    case ticketRefused = 16
    /// What the library was called with is wrong: text with a NUL, a bad option or definition.
    case invalidArgument = 64
    case wouldDeadlock = 65
    case runtimeUnavailable = 66
    case runtimeGone = 67
    case runtimeCrashed = 68
    case shutdown = 69
    case outOfMemory = 70
    case unknownTask = 71
    /// A code that this version does not know.
    case other = 127
}

/// A failure of a call, or of a function of the library. A tool in Swift throws one to fail.
public struct ToolError: Error, CustomStringConvertible, Sendable {
    public let code: Code
    /// What went wrong, written for a model to act on.
    public let message: String
    /// The whole failure as libplue gave it, with `issues` and others for some codes.
    public let json: String?

    /// A failure of a tool of this program.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
        self.json = nil
    }

    init(status: Int32, json: String) {
        struct Failure: Decodable {
            let message: String
        }
        let failure = try? JSONDecoder().decode(Failure.self, from: Data(json.utf8))
        self.code = Code(rawValue: status) ?? .other
        self.message = failure?.message ?? json
        self.json = json
    }

    /// The failure of this thread's last function.
    static func last(_ status: Int32) -> ToolError {
        ToolError(status: status, json: String(cString: plue_get_last_error_json()))
    }

    public var description: String { message }
}

/// Throws the failure of this thread's last function, if its status is one.
func check(_ status: Int32) throws {
    if status != 0 {
        throw ToolError.last(status)
    }
}
