import { mkdir, symlink, truncate } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { temporaryFolder } from "../workspace/testing.ts";
import { Refusal } from "./refusal.ts";
import type { TaskChange } from "./task_file.ts";
import { MAX_TASK_BYTES, TaskFolder } from "./tasks.ts";

const TASK = "---\nid: a\ntitle: A\nstatus: todo\n---\n";
const start = (): TaskChange => ({ status: "started", event: "x", at: new Date(0) });

describe("TaskFolder", () => {
  it("lists tasks in code-unit order, and leaves out what is none", async () => {
    await using folder = await temporaryFolder({
      "b.md": TASK.replace("id: a", "id: b"),
      "a.md": TASK,
      "B.md": TASK.replace("id: a", "id: B"),
      ".hidden.md": TASK,
      "two words.md": TASK,
      "a.txt": TASK,
    });
    await mkdir(join(folder.path, "folder.md"));
    await symlink(join(folder.path, "a.md"), join(folder.path, "link.md"));
    const { tasks, problems } = await new TaskFolder(folder.path).list();
    assertEquals(tasks.map(({ id }) => id), ["B", "a", "b"]);
    assertEquals(problems, []);
  });

  it("names what is wrong with a file, and reads the others", async () => {
    await using folder = await temporaryFolder({ "a.md": TASK, "b.md": TASK, "big.md": TASK });
    await truncate(join(folder.path, "big.md"), MAX_TASK_BYTES + 1);
    const tasks = new TaskFolder(folder.path);
    const { problems, tasks: good } = await tasks.list();
    assertEquals(good.map(({ id }) => id), ["a"]);
    assertEquals(problems.map(({ file }) => file), ["b.md", "big.md"]);
    assertStringIncludes(problems[0]?.message ?? "", 'the id must be "b"');
    assertStringIncludes(problems[1]?.message ?? "", "more than 131072 bytes");
    await assertRejects(() => tasks.read("b"), Refusal, 'The file of task "b" must be mended');
  });

  it("leaves a task alone that another process holds, and says which file to look at", async () => {
    await using folder = await temporaryFolder({ "a.md": TASK, ".a.lock": "" });
    const error = await assertRejects(
      () => new TaskFolder(folder.path).change("a", start),
      Refusal,
      'Task "a" is being changed by another process; try again',
    );
    assertEquals(error.code, "unavailable");
    assertEquals([await folder.read("a.md"), await folder.list()], [TASK, [".a.lock", "a.md"]]);
  });

  it("leaves nothing behind when a change is refused", async () => {
    await using folder = await temporaryFolder({ "a.md": TASK });
    const tasks = new TaskFolder(folder.path);
    const refuse = () => {
      throw new Refusal("denied", "No");
    };
    await assertRejects(() => tasks.change("a", refuse), Refusal, "No");
    assertEquals([await folder.read("a.md"), await folder.list()], [TASK, ["a.md"]]);
    assertEquals((await tasks.change("a", start)).status, "started");
  });

  it("does not let a task grow beyond what can be read again", async () => {
    const full = TASK + "x".repeat(MAX_TASK_BYTES - TASK.length);
    await using folder = await temporaryFolder({ "a.md": full });
    const tasks = new TaskFolder(folder.path);
    assertEquals((await tasks.read("a")).status, "todo");
    await assertRejects(() => tasks.change("a", start), Refusal, 'task "a" is full');
    assertEquals([await folder.read("a.md"), await folder.list()], [full, ["a.md"]]);
  });

  it("makes the changes of one task in the order in which they came", async () => {
    await using folder = await temporaryFolder({ "a.md": TASK });
    const tasks = new TaskFolder(folder.path);
    const seen: string[] = [];
    const order = ["started", "in_review", "done"] as const;
    await Promise.all(order.map((status) =>
      tasks.change("a", (task) => {
        seen.push(task.status);
        return { ...start(), status };
      })
    ));
    assertEquals(seen, ["todo", "started", "in_review"]);
    assertEquals((await tasks.read("a")).status, "done");
  });

  it("names near ids for one that is not there", async () => {
    await using folder = await temporaryFolder({
      "parser.md": TASK.replace("id: a", "id: parser"),
    });
    const tasks = new TaskFolder(folder.path);
    await assertRejects(() => tasks.read("parsr"), Refusal, 'no task "parsr". Near it: "parser"');
    await assertRejects(() => tasks.change("../parser", start), Refusal, "There is no task");
  });
});
