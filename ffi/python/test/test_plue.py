"""The package against a real sidecar: test/native/python.bun.test.ts runs it."""

import asyncio
import ctypes
import gc
import json
import os
import threading
import time
import unittest
import weakref

import plue

def definition(name, **more):
    return {"name": f"host:{name}", "description": "A tool of Python.", **more}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Call(ctypes.Structure):
    """struct contract_call of contract.h."""

    _fields_ = [
        ("operation", ctypes.c_char_p),
        ("is_submitted", ctypes.c_bool),
        *((name, ctypes.c_char_p) for name in ("name", "json", "session_id", "message_id", "reason")),
    ]


class Driver(ctypes.Structure):
    """struct contract_driver."""

    _fields_ = [
        ("call", ctypes.CFUNCTYPE(None, ctypes.POINTER(Call))),
        ("define", ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 3)),
    ]


class Contract(unittest.TestCase):
    """The cases of ffi/test/contract.txt, read by ffi/test/contract.c."""

    def test_holds_for_calls_that_wait_and_for_those_of_a_task(self):
        self.suite = ctypes.CDLL(os.environ["PLUE_SUITE"])
        driver = Driver(*(kind(run) for (_, kind), run in zip(Driver._fields_, (self.call, self.define))))
        # Another group begins with "text": what is not JSON cannot be passed from Python.
        for group in (b"call", b"typescript"):
            self.suite.contract_run(ctypes.byref(driver), group)
        self.assertEqual(self.suite.check_failures(), 0)

    def end(self, function, *arguments, **options):
        code, message, flags = 0, "No error", 0
        try:
            result = function(*arguments, **options)
            flags = int(type(result) is plue.Blocks)
        except plue.ToolError as error:
            result, code, message = error.details, error.code, error.message
        self.suite.contract_end(int(code), flags, compact(result).encode(), message.encode())

    def call(self, pointer):
        call = pointer.contents
        operation, name = call.operation.decode(), call.name.decode()
        value = None if call.json is None else json.loads(call.json)
        options = {
            "session_id": call.session_id and call.session_id.decode(),
            "message_id": call.message_id and call.message_id.decode(),
        }
        if operation in ("call", "resume"):
            options["on_event"] = lambda event: self.suite.contract_event(compact(event).encode())
        if operation in ("poll", "cancel"):
            self.end(getattr(plue, f"{operation}_task"), name)
        elif operation == "answer":
            self.end(plue.answer_task, name, value)
        elif operation == "start":
            self.end(plue.start_task, name, value, **options)
        elif call.is_submitted and call.reason is None:
            submit = getattr(plue, f"{operation}_async")
            self.end(lambda: asyncio.run(submit(name, value, **options)))
        else:
            signal = plue.AbortSignal()
            if call.reason is not None:
                signal.abort(call.reason.decode())
            self.end(getattr(plue, operation), name, value, signal=signal, **options)

    def define(self, operation, text, steps):
        functions = {
            b"register": lambda: plue.register(json.loads(text), run),
            b"unregister": lambda: plue.unregister(text.decode()),
            b"question": lambda: plue.on_question(run),
            b"no question": lambda: plue.on_question(None),
        }
        lines = [line.partition(" ") for line in steps.decode().splitlines()]

        def run(params, invocation):
            for kind, _, rest in lines:
                if kind == "expects":
                    self.suite.contract_expect(compact(params).encode(), rest.encode())
                elif kind == "session":
                    invocation.metadata({"session": invocation.session_id})
                elif kind == "progress":
                    done, total, message = rest.split(" ", 2)
                    invocation.progress(float(done), float(total), message)
                elif kind == "failure":
                    code, _, message = rest.partition(" ")
                    raise plue.ToolError.of(
                        {"error": plue.Code(int(code)).name.lower(), "message": message}
                    )
                elif kind in ("metadata", "output"):
                    getattr(invocation, kind)(json.loads(rest))
                else:
                    return json.loads(rest) if kind == "result" else params

        self.end(functions[operation])


class Calling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        plue.start()

    def test_refuses_what_c_would_cut(self):
        for arguments in [("echo\0",), ("echo\ud800",)]:
            with self.assertRaises(plue.InvalidArgumentError):
                plue.call(*arguments)
        with self.assertRaises(plue.InvalidArgumentError):
            plue.call("echo", session_id="a\0b")
        with self.assertRaises(ValueError):
            plue.call("echo", {"x": float("nan")})

    def test_raises_what_the_callback_raised(self):
        calls = []

        def refuse(event):
            calls.append(event)
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            plue.call("progress", {"n": 3}, on_event=refuse)
        self.assertEqual(calls, [{"i": 0}])

    def test_is_aborted_from_another_thread(self):
        signal = plue.AbortSignal()

        def stop(event):
            threading.Thread(target=signal.abort, args=["enough"]).start()

        with self.assertRaisesRegex(plue.AbortedError, "enough"):
            plue.call("hold", signal=signal, on_event=stop)
        self.assertTrue(signal.aborted)
        with self.assertRaises(plue.AbortedError):
            plue.call("echo", signal=signal)


class CallingAtOnce(unittest.TestCase):
    # Not an IsolatedAsyncioTestCase: that has asyncio record where each task was made.
    def test_waits_for_1000_calls_in_one_thread(self):
        async def wait():
            return await asyncio.gather(
                *(plue.call_async("sleep", {"ms": 100}) for _ in range(1000)),
            )

        plue.start()
        before = threading.active_count()
        began = time.perf_counter()
        results = asyncio.run(wait())
        print(f"1000 calls that wait 100 ms: {time.perf_counter() - began:.3f} s", flush=True)
        self.assertEqual(results, [{"slept": 100}] * 1000)
        self.assertEqual(threading.active_count(), before)


class CallingAsync(unittest.IsolatedAsyncioTestCase):
    async def test_raises_what_the_callback_raised(self):
        def refuse(event):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            await plue.call_async("hold", on_event=refuse)

    def test_raises_the_exit_that_the_callback_asked_for(self):
        # The loop lets it through, so that this takes a loop of its own.
        def leave(event):
            raise SystemExit(3)

        async def hold():
            await plue.call_async("hold", on_event=leave)

        with self.assertRaises(SystemExit):
            asyncio.new_event_loop().run_until_complete(hold())

    async def test_aborts_the_call_of_a_cancelled_task(self):
        began, aborted = asyncio.Event(), asyncio.Event()

        async def wait(params, invocation):
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                aborted.set()
                raise

        plue.register(definition("wait"), wait)
        task = asyncio.create_task(plue.call_async("host:wait"))
        await began.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await aborted.wait()
        plue.unregister("host:wait")

    async def test_works_in_two_loops_at_once(self):
        async def many(count):
            events = []
            for _ in range(count):
                await plue.call_async("progress", {"n": 20}, on_event=events.append)
            return events

        other = asyncio.to_thread(asyncio.run, many(50))
        mine, others = await asyncio.gather(many(50), other)
        self.assertEqual(mine, [{"i": i} for i in range(20)] * 50)
        self.assertEqual(others, mine)


class Offering(unittest.TestCase):
    def setUp(self):
        self.addCleanup(plue.shutdown)

    def test_ends_with_what_the_function_raises(self):
        kept = []

        def refuse(params, invocation):
            kept.append(invocation)
            raise {"denied": plue.DeniedError("Not yours"), "broken": ValueError("bro\0ken")}[
                params["how"]
            ]

        plue.register(definition("refuse", parameters={"type": "object"}), refuse)
        with self.assertRaisesRegex(plue.DeniedError, "Not yours"):
            plue.call("host:refuse", {"how": "denied"})
        with self.assertRaisesRegex(plue.ThrewError, "bro\ufffdken"):
            plue.call("host:refuse", {"how": "broken"})
        plue.register(definition("unsayable"), lambda params, invocation: object())
        with self.assertRaisesRegex(plue.ThrewError, "not JSON serializable"):
            plue.call("host:unsayable")
        kept[0].metadata("too late")
        self.assertFalse(kept[0].aborted)

    def test_forgets_what_is_gone(self):
        class Tool:
            def __call__(self, params, invocation):
                return None

        gone = threading.Event()
        tool = Tool()
        finalizer = weakref.finalize(tool, gone.set)
        plue.register(definition("brief"), tool)
        plue.call("host:brief")
        del tool
        gc.collect()
        self.assertTrue(finalizer.alive)
        plue.shutdown()
        gc.collect()
        self.assertTrue(gone.is_set())

    def test_tells_of_changes_of_the_list(self):
        changes = []
        plue.start()
        plue.on_list_changed(lambda: changes.append(1))
        plue.register(definition("new"), lambda params, invocation: None)
        while not changes:
            plue.dispatch()
        plue.on_list_changed(None)

    def test_needs_a_loop_for_an_async_function(self):
        async def later(params, invocation):
            return None

        with self.assertRaisesRegex(RuntimeError, "no event loop"):
            plue.register(definition("later"), later)


class OfferingAsync(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.addCleanup(plue.shutdown)

    async def test_runs_in_the_loop_and_is_called_by_others(self):
        loop = asyncio.get_running_loop()

        async def later(params, invocation):
            await asyncio.sleep(0)
            self.assertIs(asyncio.get_running_loop(), loop)
            return params

        plue.register(definition("later", parameters={"type": "object"}), later)
        self.assertEqual(await plue.call_async("host:later", {"a": 1}), {"a": 1})
        relayed = await plue.call_async("relay", {"name": "host:later", "params": {"a": 2}})
        self.assertEqual(relayed, {"a": 2})
        # From another thread, which waits while this loop runs the tool.
        self.assertEqual(await asyncio.to_thread(plue.call, "host:later", {"a": 3}), {"a": 3})
        with self.assertRaisesRegex(plue.ThrewError, "use call_async"):
            plue.call("host:later", {})

    async def test_is_cancelled_by_the_timeout_of_its_call(self):
        cancelled = asyncio.Event()

        async def wait(params, invocation):
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        plue.register(definition("wait", timeoutMs=50), wait)
        with self.assertRaises(plue.ToolTimeoutError):
            await plue.call_async("host:wait")
        await cancelled.wait()


class AskingAsync(unittest.IsolatedAsyncioTestCase):
    async def test_answers_in_the_loop(self):
        async def answer(question, invocation):
            await asyncio.sleep(0)
            return {"action": "decline"}

        plue.on_question(answer)
        self.assertEqual(await plue.call_async("confirm"), "decline")
        plue.on_question(None)


class Living(unittest.TestCase):
    def setUp(self):
        self.addCleanup(plue.shutdown)

    def test_takes_options(self):
        plue.init(config={"role": "user", "config": {"greet": {"word": "hi"}}}, abort_grace=0.5)
        self.assertEqual(plue.call("greet"), {"word": "hi"})
        self.assertNotIn("hidden", plue.tools())
        with self.assertRaises(plue.InvalidArgumentError):
            plue.init(config={})

    def test_refuses_times_that_c_would_take_for_others(self):
        for option in ["start_timeout", "abort_grace", "call_timeout"]:
            for seconds in [0, -1, 5e6, float("inf"), float("nan")]:
                with self.assertRaisesRegex(plue.InvalidArgumentError, option):
                    plue.init(**{option: seconds})
        for seconds in [-1, 3e6, float("nan")]:
            with self.assertRaisesRegex(plue.InvalidArgumentError, "timeout"):
                plue.dispatch(seconds)

    def test_says_what_cannot_be_started(self):
        plue.init(sidecar=["/nowhere/plue-sidecar"])
        with self.assertRaises(plue.RuntimeUnavailableError):
            plue.start()

    def test_has_the_version_of_the_library(self):
        self.assertEqual(plue.version(), "0.1.0")
        with self.assertRaisesRegex(RuntimeError, "was loaded from"):
            plue.load(os.devnull)


if __name__ == "__main__":
    unittest.main()
