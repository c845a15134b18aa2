/** The numbers of several arrays of a type as one array, which `make` allocates. A single array is returned itself. */
export function concatenate<T extends Int32Array | Uint32Array | Float32Array>(
  type: new (length: number) => T,
  parts: readonly T[],
  make = (length: number) => new type(length),
): T {
  if (parts.length === 1) return parts[0];
  const all = make(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * Adds values to a sum in float64, one by one; with `apart`, the squares of their differences from `apart`.
 */
export function addValues(sum: number, values: Float32Array, apart: number | undefined): number {
  if (apart === undefined) for (let k = 0; k < values.length; k++) sum += values[k];
  else for (let k = 0; k < values.length; k++) sum += (values[k] - apart) ** 2;
  return sum;
}
