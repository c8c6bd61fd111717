import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { changeTask, isTaskId, oneLine, parseTask } from "./task_file.ts";

const file = (front: string, body = "") => `---\n${front}\n---\n${body}`;
const plain = file("id: a\ntitle: The title\nstatus: todo", "\nText.\n");
const at = new Date("2026-01-02T03:04:05Z");

describe("parseTask()", () => {
  it("reads the fields and the text", () => {
    assertEquals(parseTask(plain, "a"), {
      id: "a",
      title: "The title",
      type: "impl",
      status: "todo",
      assignee: null,
      body: "Text.",
    });
  });

  it("reads quoted values, comments, lists of other fields, and Windows line ends", () => {
    const front = [
      "# a comment",
      "id: a",
      'title: "Say \\"hi\\": now"',
      "status:   in_review  ",
      "tags:",
      "  - one",
      "- two",
      "",
      "assignee: x",
    ];
    const task = parseTask(file(front.join("\n")).replaceAll("\n", "\r\n"), "a");
    assertEquals([task.title, task.status, task.assignee], ['Say "hi": now', "in_review", "x"]);
  });

  it("reads the type, which is impl where none is given", () => {
    const typed = (type: string) =>
      parseTask(file(`id: a\ntitle: x\nstatus: todo${type}`), "a").type;
    assertEquals(
      [typed(""), typed("\ntype: impl"), typed("\ntype: control")],
      ["impl", "impl", "control"],
    );
  });

  const wrong: [text: string, message: string][] = [
    ["", 'line 1: the file must begin with "---"'],
    ["text", 'line 1: the file must begin with "---"'],
    ["---\nid: a\n", 'line 3: the front matter must end with "---"'],
    [file("id: b\ntitle: x\nstatus: todo"), 'line 2: the id must be "a"'],
    [file("title: x\nstatus: todo"), 'line 1: the id must be "a"'],
    [file("id: a\nstatus: todo"), "a title is missing"],
    [file("id: a\ntitle:\nstatus: todo"), "line 3: a title is missing"],
    [file("id: a\ntitle: x"), "the status must be one of todo, started, in_review, done"],
    [file("id: a\ntitle: x\nstatus: Done"), "line 4: the status must be one of"],
    [
      file("id: a\ntitle: x\nstatus: todo\ntype: review"),
      "line 5: the type must be one of impl, control",
    ],
    [file("id: a\nid: a"), 'line 3: "id" is there twice'],
    [file("id: a\nno field"), 'line 3: it is not of the form "name: value"'],
    [file('id: a\ntitle: "x'), "line 3: what begins with a quote must be a string"],
  ];
  for (const [text, message] of wrong) {
    it(`refuses ${JSON.stringify(text).slice(0, 50)}: ${message}`, () => {
      const error = assertThrows(
        () => parseTask(text, "a"),
        SyntaxError,
        "Cannot read the task: line",
      );
      assertStringIncludes(error.message, message);
    });
  }
});

describe("changeTask()", () => {
  it("rewrites the fields it sets, adds what is missing, and begins a history", () => {
    assertEquals(
      changeTask(plain, { status: "started", assignee: "me", event: "started", at }),
      "---\nid: a\ntitle: The title\nstatus: started\nassignee: me\n---\n\nText.\n\n" +
        "## History\n\n- 2026-01-02T03:04:05.000Z started\n",
    );
  });

  it("keeps everything else as it was written", () => {
    const text = file(
      'status: todo\n# mine\nid: a\ntitle:   "A b"\nassignee: old\nextra:\n  - 1',
      "\nText.\n\n## History\n\n- before\n\n## After\n\nMore.\n",
    );
    assertEquals(
      changeTask(text, { status: "started", assignee: "new one", event: "started", at }),
      file(
        'status: started\n# mine\nid: a\ntitle:   "A b"\nassignee: "new one"\nextra:\n  - 1',
        "\nText.\n\n## History\n\n- before\n- 2026-01-02T03:04:05.000Z started\n\n" +
          "## After\n\nMore.\n",
      ),
    );
  });

  it("keeps Windows line ends", () => {
    const changed = changeTask(plain.replaceAll("\n", "\r\n"), { status: "done", event: "x", at });
    assertEquals(changed.replaceAll("\r\n", "").includes("\n"), false);
    assertEquals(parseTask(changed, "a").status, "done");
  });

  it("lets nobody write a field or a heading through an assignee or an event", () => {
    const nasty = 'x"\nstatus: done\n---\n## History';
    const changed = changeTask(plain, { status: "started", assignee: nasty, event: nasty, at });
    const task = parseTask(changed, "a");
    assertEquals([task.status, task.assignee], ["started", nasty]);
    assertEquals(task.body.split("\n").at(-1)?.endsWith('x" status: done --- ## History'), true);
  });

  it("can be repeated: what it wrote is read back the same", () => {
    let text = plain;
    for (const status of ["started", "in_review", "done"] as const) {
      text = changeTask(text, { status, event: status, at });
      assertEquals(parseTask(text, "a").status, status);
    }
    assertEquals(text.match(/^- /gm)?.length, 3);
    assertEquals(text.match(/^## History$/gm)?.length, 1);
  });
});

describe("isTaskId()", () => {
  for (const id of ["a", "01-parser", "A_b.c", "_x", "x".repeat(64)]) {
    it(`accepts ${id.slice(0, 20)}`, () => assertEquals(isTaskId(id), true));
  }
  for (const id of ["", ".a", "-a", "a b", "a/b", "..", "x".repeat(65), "a\n"]) {
    it(`refuses ${JSON.stringify(id).slice(0, 20)}`, () => assertEquals(isTaskId(id), false));
  }
});

describe("oneLine()", () => {
  it("leaves one line whatever the line ends and control characters", () => {
    assertEquals(oneLine(" a\r\n\tb\u2028c\u0000d\u0085 "), "a b c d");
  });
});
