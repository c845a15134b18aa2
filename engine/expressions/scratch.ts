/** Below this length a new array is as cheap. */
const FEW = 1024;
/** Limits of the free arrays: their number, and the numbers in each. */
const MOST_FREE = 16;
const LARGEST = 1 << 18;

/** Free arrays of this thread: allocating new memory costs several times what a kernel costs. */
const free: Float64Array[] = [];
/** Arrays used by the current evaluation; undefined outside of `withScratch`. */
let used: Float64Array[] | undefined;

/** Runs an evaluation. Its intermediate values may be in arrays that the next evaluation reuses. */
export function withScratch<Result>(evaluation: () => Result): Result {
  const outer = used;
  const own: Float64Array[] = [];
  used = own;
  try {
    return evaluation();
  } finally {
    used = outer;
    for (const array of own) if (free.length < MOST_FREE && array.length <= LARGEST) free.push(array);
  }
}

/** An array for a kernel that sets all of its numbers. */
export function numbers(length: number): Float64Array {
  if (used === undefined || length < FEW) return new Float64Array(length);
  const found = free.findIndex((array) => array.length >= length);
  const [array] = found < 0 ? [new Float64Array(2 ** Math.ceil(Math.log2(length)))] : free.splice(found, 1);
  used.push(array);
  return array.subarray(0, length);
}

/** The numbers, copied if they are in an array that the next evaluation reuses. */
export function lasting(values: Float64Array): Float64Array {
  return used?.some(({ buffer }) => buffer === values.buffer) ? values.slice() : values;
}
