import { type Data, type Dictionary, Vector } from 'apache-arrow';
import { CapacityError } from '../errors.ts';
import { RowNumbers } from '../keys/row-numbers.ts';
import { takeData } from './take-data.ts';

/**
 * Gives several dictionary columns one common dictionary, and returns it with the new codes of each column.
 * The common dictionary has each value once, unless all columns already share one. `join` joins chunks of
 * values.
 */
export function joinDictionaries(
  parts: readonly Data[],
  join: (chunks: readonly Data[]) => Data,
): {
  readonly codes: readonly Int32Array[];
  readonly dictionary: Vector;
} {
  const given = parts.map((part) => part.dictionary as Vector);
  const { dictionary: type } = parts[0].type as Dictionary;
  const longest = given.reduce((a, b) => (b.data.length > a.data.length ? b : a));
  // Within a stream a dictionary only grows, by chunks.
  if (given.every(({ data }) => data.every((chunk, i) => chunk === longest.data[i])))
    return { codes: parts.map((part) => part.values.subarray(0, part.length)), dictionary: longest };

  const numbers = new RowNumbers([{ name: 'dictionary', type }]);
  const numbersOf = new Map<Vector, Uint32Array>();
  const chunks: Data[] = [];
  for (const dictionary of new Set(given)) {
    const values = join(dictionary.data);
    const before = numbers.size;
    const own = numbers.add([values], values.length);
    numbersOf.set(dictionary, own);
    chunks.push(takeData(values, firstRows(own, before, numbers.size)));
  }
  requireRoom(parts[0].type as Dictionary, numbers.size);
  return {
    codes: parts.map((part) => codesOf(part, numbersOf.get(part.dictionary as Vector) as Uint32Array)),
    dictionary: new Vector([join(chunks)]),
  };
}

/** The first row of each number in [before, end). */
function firstRows(numbers: Uint32Array, before: number, end: number): Uint32Array {
  const rows = new Uint32Array(end - before);
  let next = before;
  for (let row = 0; next < end; row++) if (numbers[row] === next) rows[next++ - before] = row;
  return rows;
}

function codesOf(part: Data, numbers: Uint32Array): Int32Array {
  const given = part.values as Int32Array | BigInt64Array;
  const codes = new (part.values.constructor as Int32ArrayConstructor)(part.length);
  const wide = (codes as Int32Array | BigInt64Array) instanceof BigInt64Array;
  for (let row = 0; row < part.length; row++) {
    if (part.nullCount > 0 && !part.getValid(row)) continue;
    const code = numbers[Number(given[row])];
    codes[row] = wide ? (BigInt(code) as never) : code;
  }
  return codes;
}

function requireRoom({ indices, dictionary }: Dictionary, values: number): void {
  const { bitWidth, isSigned } = indices;
  if (values <= 2 ** (isSigned ? bitWidth - 1 : bitWidth)) return;
  throw new CapacityError(
    `the dictionaries of a column have ${values} values together, too many for codes of ${bitWidth} bits`,
    { advice: `Cast the column to ${String(dictionary)}` },
  );
}
