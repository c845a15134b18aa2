/** Headers of pages against another library's reading. */
import { parquetHeader } from 'hyparquet/src/column.js';
import { describe, expect, test } from 'vitest';
import { HeaderReader, type PageHeader } from '../../../connectors/parquet/pages/page-header.ts';
import { PageKernel } from '../../../connectors/parquet/pages/page-kernel.ts';
import { checkThriftShape } from '../../../connectors/parquet/thrift-shape.ts';
import { random } from './parquet-testing.ts';

type Field = number | boolean | Uint8Array | readonly number[] | Fields;
interface Fields {
  readonly [number: number]: Field;
}

/** A struct of Thrift's compact protocol: whole numbers as i32, bytes, lists of i32 and structs. */
function thrift(fields: Fields): number[] {
  const varint = (value: number): number[] =>
    value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
  const zigzag = (value: number) => varint(value < 0 ? -2 * value - 1 : 2 * value);
  const contents = (value: Field): [kind: number, bytes: number[]] => {
    if (typeof value === 'boolean') return [value ? 1 : 2, []];
    if (typeof value === 'number') return [5, zigzag(value)];
    if (value instanceof Uint8Array) return [8, [...varint(value.length), ...value]];
    if (!Array.isArray(value)) return [12, thrift(value as Fields)];
    const length = value.length < 15 ? [(value.length << 4) | 5] : [0xf5, ...varint(value.length)];
    return [9, [...length, ...(value as readonly number[]).flatMap(zigzag)]];
  };
  let last = 0;
  const bytes = Object.entries(fields).flatMap(([name, value]) => {
    const [field, [kind, content]] = [Number(name), contents(value)];
    const isNear = field > last && field - last < 16;
    const head = isNear ? [((field - last) << 4) | kind] : [kind, ...zigzag(field)];
    last = field;
    return [...head, ...content];
  });
  return [...bytes, 0];
}

/** The low 32 bits of a number; undefined for values of other types. */
function sumOf(crc: unknown): number | undefined {
  return typeof crc === 'number' || typeof crc === 'bigint'
    ? Number(BigInt.asUintN(32, BigInt(crc)))
    : undefined;
}

/** A header as another library reads it. */
function libraryHeader(bytes: Uint8Array): unknown {
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
  checkThriftShape(bytes);
  const {
    type,
    compressed_page_size: packed,
    uncompressed_page_size: unpacked,
    crc,
    data_page_header: first,
    data_page_header_v2: second,
    dictionary_page_header: dictionary,
  } = parquetHeader(reader);
  const sizes = { bytes: reader.offset, packed, unpacked, crc: sumOf(crc) };
  if (type === 'DICTIONARY_PAGE')
    return {
      ...sizes,
      kind: 'dictionary',
      values: dictionary?.num_values,
      encoding: String(dictionary?.encoding),
    };
  if (type === 'DATA_PAGE')
    return { ...sizes, kind: 'values', values: first?.num_values, encoding: String(first?.encoding) };
  return {
    ...sizes,
    kind: 'values',
    values: second?.num_values,
    encoding: String(second?.encoding),
    second: { levels: second?.definition_levels_byte_length, isPacked: second?.is_compressed !== false },
  };
}

describe('headers of pages', () => {
  const kernel = PageKernel.take();
  const headers = new HeaderReader(kernel);
  const many = Array.from({ length: 20 }, (_, i) => i);
  const statistics = { 1: new Uint8Array(30), 2: new Uint8Array(3), 3: 0, 7: true, 9: [1, -2, 3], 10: many };
  const all: readonly Fields[] = [
    { 1: 2, 2: 40, 3: 49, 7: { 1: 10, 2: 2, 3: false } },
    { 1: 0, 2: 30_762, 3: 29_237, 4: -77, 5: { 1: 20_480, 2: 8, 3: 3, 4: 3, 5: statistics } },
    { 1: 0, 2: 268_435_456, 3: 0, 5: { 1: 0, 2: 0, 3: 3, 4: 3 }, 40: { 1: true, 300: 5 } },
    {
      1: 3,
      2: 900,
      3: 800,
      8: { 1: 100, 2: 0, 3: 100, 4: 8, 5: 7, 6: 0, 7: false, 8: { 1: new Uint8Array(2) } },
    },
    { 1: 3, 2: 900, 3: 800, 8: { 1: 100, 2: 0, 3: 100, 4: 0, 5: 7, 6: 0 } },
  ];
  const written = all.map((fields) => Uint8Array.from(thrift(fields)));

  test('are read as another library reads them', () => {
    for (const bytes of written) {
      expect(headers.read(bytes)).toEqual(libraryHeader(bytes));
      expect(headers.read(Uint8Array.from([...bytes, 7, 7]))).toEqual(libraryHeader(bytes));
      for (let end = 0; end < bytes.length; end++)
        expect(() => headers.read(bytes.subarray(0, end))).toThrow('makes no sense');
    }
  });

  test('that are damaged are refused, or are those that another library reads', () => {
    const next = random(11);
    let read = 0;
    for (let run = 0; run < 6000; run++) {
      const bytes = Uint8Array.from(written[next(written.length)]);
      for (let change = next(3); change >= 0; change--)
        bytes[next(bytes.length)] = next(4) === 0 ? 255 : next(256);
      let found: PageHeader;
      try {
        found = headers.read(bytes);
      } catch (error) {
        expect(error).not.toBeInstanceOf(WebAssembly.RuntimeError);
        continue;
      }
      // Such a page is refused by its reader.
      if (found.encoding === 'undefined') continue;
      // A number in the form of 64 bits is the same number.
      expect(found).toEqual(
        JSON.parse(
          JSON.stringify(libraryHeader(bytes), (_, value: unknown) =>
            typeof value === 'bigint' ? Number(value) : value,
          ),
        ),
      );
      read++;
    }
    expect(read).toBeGreaterThan(300);
  });

  test.each([
    ['nested too deeply', Array<number>(40).fill(0x1c)],
    ['in lists nested too deeply', [0x19, ...Array<number>(40).fill(0x19)]],
    ['with a list longer than the bytes', [0x19, 0xf5, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0]],
    ['with an integer of eleven bytes', [0x15, ...Array<number>(10).fill(128), 0, 0]],
    ['of a kind that is unknown', [0x1b, 0, 0]],
  ])('%s are refused', (_, bytes) => {
    expect(() => headers.read(Uint8Array.from(bytes))).toThrow('makes no sense');
  });
});
