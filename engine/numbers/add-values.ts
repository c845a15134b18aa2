/** Adds numbers, or the squares of their differences to `apart`, to a sum one by one in float64. */
export function addValues(sum: number, values: Float32Array, apart: number | undefined): number {
  if (apart === undefined) for (let k = 0; k < values.length; k++) sum += values[k];
  else for (let k = 0; k < values.length; k++) sum += (values[k] - apart) ** 2;
  return sum;
}
