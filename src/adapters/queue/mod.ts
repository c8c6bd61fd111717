/**
 * Queues of tasks that several processes share (`@plue/tools/queue`).
 *
 * @module
 */

export {
  type DeadTask,
  type RunningTask,
  TaskQueue,
  taskQueue,
  type TaskQueueOptions,
  type TaskQueueState,
  type TaskRetry,
  type WorkOptions,
} from "../../execute/durable/mod.ts";
