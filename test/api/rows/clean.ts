/** A function that threads import: doubles the ratings of a batch, or does what `args` says. */
import { Float64, makeData, RecordBatch, Struct } from 'apache-arrow';

export function doubled(batch: RecordBatch, args?: { readonly fails?: boolean }) {
  if (args?.fails) throw new Error('no more');
  const at = batch.schema.fields.findIndex(({ name }) => name === 'x');
  const values = Float64Array.from(batch.data.children[at].values as Float64Array, (value) => 2 * value);
  const children = [...batch.data.children];
  children[at] = makeData({ type: new Float64(), length: batch.numRows, data: values });
  const type = new Struct(batch.schema.fields);
  return new RecordBatch(batch.schema, makeData({ type, length: batch.numRows, nullCount: 0, children }));
}

/** The first half of the rows; with `twice`: only the column `x`, each row twice. */
export function resized(batch: RecordBatch, { twice }: { readonly twice: boolean }): RecordBatch {
  if (!twice) return batch.slice(0, batch.numRows >> 1);
  const x = batch.getChild('x')?.toArray() as Float64Array;
  const values = Float64Array.from({ length: 2 * x.length }, (_, i) => x[i >> 1]);
  const data = makeData({ type: new Float64(), length: values.length, nullCount: 0, data: values });
  return new RecordBatch({ x: data });
}

export const notAFunction = 1;

/** A row with its number as text and half of `x`; what `i` says makes it fail. */
export function rewritten(
  { i, x }: { readonly i: bigint; readonly x: number },
  { fails }: { fails?: string },
) {
  if (i === 5001n && fails === 'throws') throw new Error('no more');
  if (i === 5001n && fails === 'type') return { text: 5 };
  if (i === 5001n && fails === 'column') return { txt: 'a' };
  return { text: `row ${i}`, half: x === 0 ? null : x / 2, at: new Date(Number(i)) };
}

export const sameRow = (row: object, changed?: object) => ({ ...row, ...changed });
