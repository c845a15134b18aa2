/** Fewer numbers are as cheap in memory of their own. */
const FEW = 1024;
/** Most arrays, and most numbers of each, that stay for later rows. */
const MOST_FREE = 16;
const LARGEST = 1 << 18;

/** Memory of this thread that no evaluation uses: fresh memory costs several times what a kernel does. */
const free: Float64Array[] = [];
/** Memory of the evaluation under way; undefined outside of `withScratch`. */
let used: Float64Array[] | undefined;

/** Runs an evaluation whose values between columns and result may be in memory that the next one takes. */
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

/** Numbers that a kernel sets, all of them. */
export function numbers(length: number): Float64Array {
  if (used === undefined || length < FEW) return new Float64Array(length);
  const found = free.findIndex((array) => array.length >= length);
  const [array] = found < 0 ? [new Float64Array(2 ** Math.ceil(Math.log2(length)))] : free.splice(found, 1);
  used.push(array);
  return array.subarray(0, length);
}

/** The numbers, in memory of their own where they are in memory of the evaluation. */
export function lasting(values: Float64Array): Float64Array {
  return used?.some(({ buffer }) => buffer === values.buffer) ? values.slice() : values;
}
