/**
 * Adds values to a sum in float64, one by one; with `apart`, the squares of their differences from `apart`.
 */
export function addValues(sum: number, values: Float32Array, apart: number | undefined): number {
  if (apart === undefined) for (let k = 0; k < values.length; k++) sum += values[k];
  else for (let k = 0; k < values.length; k++) sum += (values[k] - apart) ** 2;
  return sum;
}
