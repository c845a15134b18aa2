import { UsageError } from '../errors.ts';
import type { KeyColumn, KeyType } from './key-column.ts';

/**
 * The ids of a list as a column of the given type. Throws UsageError for an id that does not fit the type.
 */
export function keysOfIds(ids: readonly (string | number | bigint)[], type: KeyType): KeyColumn {
  if (type === 'utf8') {
    const texts = ids.map((id) => new TextEncoder().encode(String(id)));
    const offsets = new Int32Array(ids.length + 1);
    texts.forEach((text, i) => (offsets[i + 1] = offsets[i] + text.length));
    const bytes = new Uint8Array(offsets[ids.length]);
    texts.forEach((text, i) => bytes.set(text, offsets[i]));
    return { type, offsets, bytes };
  }
  const bits = type === 'int32' ? 32 : 64;
  const values = ids.map((id) => integer(id, bits));
  if (type === 'int32') return { type, values: Int32Array.from(values, Number) };
  return { type, halves: new Int32Array(BigInt64Array.from(values).buffer) };
}

function integer(id: string | number | bigint, bits: number): bigint {
  const text = String(id).trim();
  const value = /^[+-]?\d+$/.test(text) ? BigInt(text) : undefined;
  if (value !== undefined && BigInt.asIntN(bits, value) === value) return value;
  throw new UsageError(`"${text}" is not an id: ids are int${bits} here`);
}
