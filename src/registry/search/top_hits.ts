/**
 * Keeps the best few of many, in a heap whose root is the worst of those kept.
 *
 * @module
 */

/**
 * The first `limit` of `items` in the order of `isBefore`, in that order.
 *
 * @param count How many of `items` there are.
 * @param items Reordered by the call.
 */
export function takeFirst<T>(
  items: readonly T[],
  limit: number,
  isBefore: (a: T, b: T) => boolean,
): T[] {
  const heap: T[] = [];
  for (const item of items) {
    if (heap.length < limit) {
      heap.push(item);
      up(heap, isBefore);
    } else if (isBefore(item, heap[0] as T)) {
      heap[0] = item;
      down(heap, heap.length, isBefore);
    }
  }
  for (let end = heap.length - 1; end > 0; end--) {
    const worst = heap[0] as T;
    heap[0] = heap[end] as T;
    heap[end] = worst;
    down(heap, end, isBefore);
  }
  return heap;
}

function up<T>(heap: T[], isBefore: (a: T, b: T) => boolean): void {
  let child = heap.length - 1;
  const item = heap[child] as T;
  while (child > 0) {
    const parent = (child - 1) >> 1;
    if (!isBefore(heap[parent] as T, item)) break;
    heap[child] = heap[parent] as T;
    child = parent;
  }
  heap[child] = item;
}

function down<T>(heap: T[], size: number, isBefore: (a: T, b: T) => boolean): void {
  const item = heap[0] as T;
  let parent = 0;
  for (let child = 1; child < size; child = 2 * parent + 1) {
    if (child + 1 < size && isBefore(heap[child] as T, heap[child + 1] as T)) child++;
    if (!isBefore(item, heap[child] as T)) break;
    heap[parent] = heap[child] as T;
    parent = child;
  }
  heap[parent] = item;
}
