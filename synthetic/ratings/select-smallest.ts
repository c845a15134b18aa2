/**
 * Moves the `wanted` smallest of the first `count` keys to the front, with their values, in no particular
 * order (C. A. R. Hoare's FIND with the middle element as pivot).
 */
export function selectSmallest(keys: Float64Array, values: Int32Array, count: number, wanted: number): void {
  let left = 0;
  let right = count - 1;
  while (left < right) {
    const pivot = keys[(left + right) >>> 1];
    let i = left;
    let j = right;
    while (i <= j) {
      while (keys[i] < pivot) i++;
      while (keys[j] > pivot) j--;
      if (i > j) break;
      const key = keys[i];
      keys[i] = keys[j];
      keys[j] = key;
      const value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
    // Now keys[..j] <= pivot <= keys[i..], and the keys between equal the pivot.
    if (wanted - 1 <= j) right = j;
    else if (wanted - 1 >= i) left = i;
    else return;
  }
}
