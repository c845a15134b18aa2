/**
 * The n best (score, item) pairs of one row, as a binary heap whose root is the worst of them. A pair is
 * worse if its score is lower, or equal with a higher item. The heap starts full of (-Infinity, NONE), so a
 * new pair always replaces the root. A score of NaN never enters.
 *
 *     scores  Float32[n]     items  Uint32[n]
 */

/** The item of an empty entry. */
export const NONE: u32 = 0xffffffff;

@inline
function worse(score: f32, item: u32, thanScore: f32, thanItem: u32): bool {
  return score < thanScore || (score == thanScore && item > thanItem);
}

/** Fills the heap with n empty entries. */
export function clearHeap(scores: usize, items: usize, n: i32): void {
  for (let k = 0; k < n; k++) {
    store<f32>(scores + ((<usize>k) << 2), -Infinity);
    store<u32>(items + ((<usize>k) << 2), NONE);
  }
}

/**
 * Replaces the root of a heap of `n` entries, and moves the new entry down until its children are not worse.
 */
export function replaceRoot(scores: usize, items: usize, n: i32, score: f32, item: u32): void {
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= n) break;
    let childScore = load<f32>(scores + ((<usize>child) << 2));
    let childItem = load<u32>(items + ((<usize>child) << 2));
    if (child + 1 < n) {
      const rightScore = load<f32>(scores + ((<usize>child) << 2), 4);
      const rightItem = load<u32>(items + ((<usize>child) << 2), 4);
      if (worse(rightScore, rightItem, childScore, childItem)) {
        child++;
        childScore = rightScore;
        childItem = rightItem;
      }
    }
    if (!worse(childScore, childItem, score, item)) break;
    store<f32>(scores + ((<usize>at) << 2), childScore);
    store<u32>(items + ((<usize>at) << 2), childItem);
    at = child;
  }
  store<f32>(scores + ((<usize>at) << 2), score);
  store<u32>(items + ((<usize>at) << 2), item);
}

/** Turns the heap into a list, best first; the empty entries at its end get the score NaN. */
export function sortHeap(scores: usize, items: usize, n: i32): void {
  for (let last = n - 1; last > 0; last--) {
    const score = load<f32>(scores + ((<usize>last) << 2));
    const item = load<u32>(items + ((<usize>last) << 2));
    const rootScore = load<f32>(scores);
    const rootItem = load<u32>(items);
    replaceRoot(scores, items, last, score, item);
    store<f32>(scores + ((<usize>last) << 2), rootScore);
    store<u32>(items + ((<usize>last) << 2), rootItem);
  }
  for (let k = 0; k < n; k++) {
    if (load<u32>(items + ((<usize>k) << 2)) == NONE) store<f32>(scores + ((<usize>k) << 2), NaN);
  }
}
