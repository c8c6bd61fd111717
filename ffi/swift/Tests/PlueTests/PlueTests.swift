import Foundation
import Plue
import XCTest

/// With a real sidecar: test/native/swift.bun.test.ts runs them where there is Swift.
final class PlueTests: XCTestCase {
    func testReturnsTheResult() throws {
        XCTAssertTrue(try Plue.tools().contains("\"echo\""))
        XCTAssertEqual(try Plue.callAndWait("echo", #"{"a":"ü"}"#).json, #"{"a":"ü"}"#)
    }

    func testThrowsFailures() async throws {
        XCTAssertThrowsError(try Plue.callAndWait("nope")) { error in
            XCTAssertEqual((error as? ToolError)?.code, .unknownTool)
        }
        XCTAssertThrowsError(try Plue.callAndWait("a\0b")) { error in
            XCTAssertEqual((error as? ToolError)?.code, .invalidArgument)
        }
        do {
            _ = try await Plue.call("nope")
            XCTFail("It threw nothing")
        } catch let error as ToolError {
            XCTAssertEqual(error.code, .unknownTool)
        }
    }

    func testWaitsForAThousandCalls() async throws {
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1000 {
                group.addTask { try await Plue.call("sleep", #"{"ms":100}"#).json }
            }
            for try await answer in group {
                XCTAssertEqual(answer, #"{"slept":100}"#)
            }
        }
    }

    func testAbortsTheCallOfACancelledTask() async throws {
        let (began, continuation) = AsyncStream<Void>.makeStream()
        let task = Task {
            try await Plue.call("hold", "{}", CallOptions(onEvent: { _ in continuation.yield() }))
        }
        for await _ in began { break }
        task.cancel()
        do {
            _ = try await task.value
            XCTFail("It threw nothing")
        } catch is CancellationError {}
    }

    func testRegistersTools() async throws {
        try Plue.register(
            #"{"name":"host:add","description":"Adds.","parameters":{"type":"object"}}"#
        ) { invocation, params in
            invocation.progress(1, of: 2)
            if params == "{}" { throw ToolError(.denied, "Not yours") }
            return params
        }
        try Plue.registerAsync(
            #"{"name":"host:later","description":"Later.","parameters":{"type":"object"}}"#
        ) { _, params in try await Plue.call("host:add", params).json }
        let answer = try await Plue.call("host:later", #"{"a":1}"#)
        XCTAssertEqual(answer.json, #"{"a":1}"#)
        XCTAssertFalse(answer.hasBlocks)
        XCTAssertTrue(try Plue.callAndWait("draw").hasBlocks)
        XCTAssertThrowsError(try Plue.callAndWait("host:add")) { error in
            XCTAssertEqual((error as? ToolError)?.code, .denied)
        }
        try Plue.unregister("host:add")
        try Plue.unregister("host:later")
    }

    func testAnswersQuestionsAndKeepsTasks() async throws {
        try Plue.setQuestion { _, question in
            XCTAssertTrue(question.contains("Really?"))
            return #"{"action":"decline"}"#
        }
        XCTAssertEqual(try Plue.callAndWait("confirm").json, #""decline""#)
        try Plue.setQuestion(nil)
        do {
            _ = try await Plue.call("confirm")
            XCTFail("It threw nothing")
        } catch let error as ToolError where error.code == .inputRequired {}
        XCTAssertTrue(try Plue.startTask("echo").contains("\"id\""))
        XCTAssertThrowsError(try Plue.pollTask("none")) { error in
            XCTAssertEqual((error as? ToolError)?.code, .unknownTask)
        }
    }
}
