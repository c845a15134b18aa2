import { Data, DataType, Field, List, Utf8 } from 'apache-arrow';
import { UsageError } from '../../errors.ts';
import { nearest, spelled } from '../../nearest.ts';
import { joinData } from '../../stream/join-data.ts';
import { takeData } from '../../stream/take-data.ts';
import { elementsAt, isList } from '../../values/value-texts.ts';
import { readData } from '../read.ts';
import { isInteger, valueTypeOf } from '../types.ts';
import { maskOf, numbersOf, textsOf, type Values } from '../values.ts';
import { writeData } from '../write.ts';
import { exactly, type Functions, numberResult, type Rows, type Signature } from './function.ts';

const textList = new List(new Field('item', new Utf8(), true));

/** Lists and structs. Elements count from 1, as in DuckDB and in Spark's functions. */
export const lists: Functions = {
  split: {
    takes: '(text, separator)',
    sign: (args) => {
      const signature = exactly(['utf8', 'utf8'], 'other')(args);
      return signature && { ...signature, arrow: textList };
    },
    kernel: split,
  },
  elementAt: {
    takes: '(list, number)',
    sign: ([list, number, ...more]) => {
      if (more.length > 0 || !number || !(isInteger(number.type) || number.type === 'null')) return undefined;
      return list.arrow && isList(list.arrow)
        ? valueOf([list.type, 'int64'], list.arrow.children[0].type)
        : undefined;
    },
    kernel: elementAt,
  },
  listLength: {
    takes: '(list)',
    sign: ([list, ...more]) =>
      more.length === 0 && list.arrow && isList(list.arrow)
        ? { args: [list.type], result: 'int64' }
        : undefined,
    kernel: ([list], rows) => {
      const [data, mask] = [dataOf(list), maskOf(list)];
      const lengthOf = (_: unknown, i: number) => {
        const [from, to] = elementsAt(data, i & mask);
        return to - from;
      };
      return numberResult(rows, Float64Array.from({ length: rows.length }, lengthOf));
    },
  },
  field: {
    takes: "(struct, 'name')",
    sign: ([struct, name, ...more]) => {
      if (more.length > 0 || !struct.arrow || !DataType.isStruct(struct.arrow)) return undefined;
      const found = name?.constant?.form === 'text' ? name.constant.values[0] : undefined;
      if (found === undefined) return undefined;
      return valueOf([struct.type, 'utf8'], struct.arrow.children[fieldOf(struct.arrow, found)].type);
    },
    kernel: ([struct, name], rows) => {
      const data = dataOf(struct);
      const child = data.children[fieldOf(data.type, textsOf(name)[0])];
      return takeValues(child, rows, (i) => i & maskOf(struct));
    },
  },
};

function valueOf(args: Signature['args'], type: DataType): Signature {
  const result = valueTypeOf(type);
  return { args, result, ...(result === 'other' && { arrow: type }) };
}

function dataOf(column: Values): Data {
  if (column.form !== 'opaque' || column.data === undefined) throw new Error(`no data of a ${column.type}`);
  return column.data;
}

function fieldOf({ children }: DataType, name: string): number {
  const names = children.map((child) => child.name);
  const found = names.indexOf(name);
  if (found >= 0) return found;
  throw new UsageError(`a struct has no field "${name}"`, {
    advice: spelled(nearest(name, names), `Its fields are: ${names.join(', ')}`),
  });
}

/** The values at a position for each row, null where that is undefined or the row has a null argument. */
export function takeValues(data: Data, rows: Rows, positionOf: (row: number) => number | undefined): Values {
  const positions = new Uint32Array(rows.length);
  let hasNulls = false;
  for (let i = 0; i < positions.length; i++) {
    const at = rows.valid?.[i] === 0 ? undefined : positionOf(i);
    positions[i] = at ?? data.length;
    hasNulls ||= at === undefined;
  }
  const withNull = hasNulls ? joinData(data.type, [data], 1) : data;
  return { ...readData(takeData(withNull, positions)), constant: rows.constant };
}

/** Null beyond both ends of the list, and for 0. */
function elementAt([list, number]: readonly Values[], rows: Rows): Values {
  const [data, numbers] = [dataOf(list), numbersOf(number)];
  return takeValues(data.children[0], rows, (i) => {
    const [from, to] = elementsAt(data, i & maskOf(list));
    const n = numbers[i & maskOf(number)];
    const at = n > 0 ? from + n - 1 : to + n;
    return n !== 0 && at >= from && at < to ? at : undefined;
  });
}

/** The texts between separators; each character if the separator is empty. An empty text is one part. */
function split([text, separator]: readonly Values[], rows: Rows): Values {
  const [texts, separators] = [textsOf(text), textsOf(separator)];
  const [offsets, parts] = [new Int32Array(rows.length + 1), new Array<string>()];
  for (let i = 0; i < rows.length; i++) {
    const [value, by] = [texts[i & maskOf(text)], separators[i & maskOf(separator)]];
    if (rows.valid?.[i] !== 0)
      for (const part of by === '' ? value || [''] : value.split(by)) parts.push(part);
    offsets[i + 1] = parts.length;
  }
  const shape = { type: 'utf8', length: parts.length, constant: false } as const;
  const child = writeData({ form: 'text', values: parts, ...shape }, parts.length);
  const made = new Data(textList, 0, rows.length, 0, { 0: offsets } as never, [child]);
  const at = (row: number) => (row < rows.length ? row : undefined);
  return takeValues(made, rows, at);
}
