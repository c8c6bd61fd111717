/**
 * Transactions over the workspace's files. The changes of a call are rolled back if the call fails,
 * or at the next start if the process died.
 *
 * Two open transactions cannot change the same path, or a folder and something in it: the second is
 * refused, and may try again.
 *
 * @module
 */

import { basename, join } from "node:path";
import process from "node:process";
import type { ToolContext, Transaction, TransactionManager } from "../../mod.ts";
import {
  type FileTransaction,
  isOpenJournal,
  JournaledTransaction,
  rollbackError,
} from "./file_transaction.ts";
import { Folder } from "./held.ts";
import { type JournalEntry, type JournalHead, journalsFolder, readJournals } from "./journal.ts";
import { startTime } from "./marked_processes.ts";
import { isWithin } from "./paths.ts";
import { errorCode, Refusal } from "./refusal.ts";
import { clearAway, statOrNothing, undo } from "./undo.ts";

export type { FileTransaction } from "./file_transaction.ts";

/**
 * The transaction of a call, as this module's manager made it.
 *
 * @throws {TypeError} If the dispatcher was given another transaction manager.
 */
export function fileTransaction(context: Pick<ToolContext, "transaction">): FileTransaction {
  const { transaction } = context;
  if (!(transaction instanceof JournaledTransaction)) {
    throw new TypeError(
      "Cannot change files: the dispatcher must be given the workspace's own transactions",
    );
  }
  return transaction;
}

/** Opens, commits and rolls back transactions over one workspace. */
export class FileTransactionManager implements TransactionManager {
  readonly #workspace: { readonly root: string };
  readonly #journals: string;
  /** Paths that open transactions have changed. */
  readonly #claims = new Map<string, Transaction>();
  readonly #open = new Set<string>();

  /**
   * @param workspace Gives the workspace's real path when it is needed.
   * @param journals Where journals lie: a folder of the user's alone, outside of workspaces.
   */
  constructor(workspace: { readonly root: string }, journals: string = journalsFolder()) {
    this.#workspace = workspace;
    this.#journals = journals;
  }

  /** How many transactions are open. */
  get openCount(): number {
    return this.#open.size;
  }

  begin(): FileTransaction {
    const transaction = new JournaledTransaction(
      this.#workspace.root,
      this.#journals,
      crypto.randomUUID(),
      (path, shown) => this.#claim(transaction, path, shown),
    );
    this.#open.add(transaction.id);
    return transaction;
  }

  async commit(transaction: Transaction): Promise<void> {
    await own(transaction).commit();
    this.#forget(transaction);
  }

  async rollback(transaction: Transaction, _reason?: unknown): Promise<void> {
    try {
      await own(transaction).rollback();
    } finally {
      this.#forget(transaction);
    }
  }

  /**
   * Rolls back the open transactions of processes that died, and removes the folders of committed
   * ones. Call it once, before serving.
   *
   * @returns How many transactions were rolled back.
   * @throws {Error} If one cannot be rolled back; its folder is kept.
   */
  async recover(): Promise<number> {
    const { root } = this.#workspace;
    let count = 0;
    for (const [file, journal] of await readJournals(this.#journals, root)) {
      if (isInUse(file, journal.head)) continue;
      const name = basename(journal.head.folder);
      // Without its folder nothing can be put back: a person removed it to keep the changes.
      if (!journal.isCommitted && await statOrNothing(join(root, name)) !== undefined) {
        const problems = await undoJournal(root, name, journal.entries);
        if (problems.length > 0) throw rollbackError(name, problems);
        count++;
      }
      await clearAway(root, name, file);
    }
    return count;
  }

  #claim(transaction: Transaction, path: string, shown: string): void {
    for (const [claimed, owner] of this.#claims) {
      if (owner !== transaction && (isWithin(claimed, path) || isWithin(path, claimed))) {
        throw new Refusal("unavailable", `Cannot change "${shown}": another call is changing it`, {
          retryable: true,
        });
      }
    }
    this.#claims.set(path, transaction);
  }

  #forget(transaction: Transaction): void {
    this.#open.delete(transaction.id);
    for (const [path, owner] of this.#claims) {
      if (owner === transaction) this.#claims.delete(path);
    }
  }
}

async function undoJournal(
  root: string,
  name: string,
  entries: readonly JournalEntry[],
): Promise<readonly string[]> {
  let backups: Folder;
  try {
    backups = await Folder.open(join(root, name));
  } catch {
    return [`"${name}": it leads elsewhere`];
  }
  await using _ = backups;
  return await undo(root, backups, entries.map((entry) => ({ entry })));
}

function own(transaction: Transaction): JournaledTransaction {
  if (transaction instanceof JournaledTransaction) return transaction;
  throw new TypeError("Cannot end the transaction: it was begun by another manager");
}

/** Whether the process that wrote the journal may still be running. */
function isInUse(journal: string, { pid, started }: JournalHead): boolean {
  // In a container every run has the same pid, so an equal pid may be an earlier run.
  if (pid === process.pid) return isOpenJournal(journal);
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) !== "EPERM") return false;
  }
  // The system may have given the number to another process by now.
  const now = startTime(pid);
  return now === 0 || started === 0 || now === started;
}
