import { Bool, Field, Float32, Int32, Int64, makeVector, Schema, Table, tableToIPC } from 'apache-arrow';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ArrowSource } from '../../connectors/arrow/arrow-source.ts';
import { loadModel, saveModel } from '../../connectors/model/model-store.ts';
import { parquetBackendNames } from '../../connectors/parquet/backend.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { footerSchema } from '../../connectors/parquet/parquet-wasm/parquet-wasm-backend.ts';
import {
  decodeThrift,
  encodeThrift,
  integerIn,
  structIn,
  structsIn,
  type ThriftStruct,
  type ThriftValue,
} from '../../connectors/parquet/write/thrift.ts';
import { FactorFlowError } from '../../engine/errors.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { everyNth, isDeep } from '../support/deep.ts';
import { editMetadata } from '../support/edit-metadata.ts';
import { context, goldenFolder } from './parquet/parquet-testing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
/** MiB that reading a file of some kilobytes may add to the process at most, with the decoder's own. */
const MOST_MIB = 700;

/** Reads all rows; a refusal must name the file. */
async function outcomeOf(source: Source, file: string): Promise<'read' | 'refused'> {
  try {
    for await (const batch of await source.execute(context() as never))
      expect(batch.numRows).toBeLessThan(100_000);
    return 'read';
  } catch (error) {
    if (
      !(error instanceof FactorFlowError) ||
      ![3, 4].includes(error.exitCode) ||
      !error.message.includes(file)
    )
      throw error;
    return 'refused';
  }
}

type NumberValue = Extract<ThriftValue, { readonly number: bigint }>;

/** The numbers of a struct and of all below it, each with a function that puts another in its place. */
function* numbersOf(fields: ThriftStruct): Generator<(number: bigint) => void> {
  for (const [field, value] of fields) {
    if ('number' in value) yield (number) => void fields.set(field, { ...value, number } as NumberValue);
    else if ('fields' in value) yield* numbersOf(value.fields);
    else if ('items' in value) {
      for (const [index, item] of value.items.entries()) {
        if ('fields' in item) yield* numbersOf(item.fields);
        else if ('number' in item)
          yield (number) => void (value.items[index] = { ...item, number } as NumberValue);
      }
    }
  }
}

function footerOf(file: Buffer): { readonly start: number; readonly fields: ThriftStruct } {
  const start = file.length - 8 - file.readUInt32LE(file.length - 8);
  return { start, fields: decodeThrift(file.subarray(start, -8)) };
}

function withFooter(data: Buffer, fields: ThriftStruct): Buffer {
  const footer = Buffer.from(encodeThrift(fields));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([data, footer, length, Buffer.from('PAR1')]);
}

const declared = [2n ** 31n - 1n, 2n ** 40n, -1n];

test.each(['all-null', 'full-range-alone', 'list-features'])(
  'numbers of 2^40 and below 0 in each place of a Parquet footer: %s',
  async (name) => {
    const original = readFileSync(join(goldenFolder, `${name}.parquet`));
    const before = process.memoryUsage.rss() / 2 ** 20;
    const outcomes = new Set<string>();
    const count = [...numbersOf(footerOf(original).fields)].length;
    for (let place = 0; place < count; place += isDeep ? 1 : 3) {
      for (const number of declared) {
        const { start, fields } = footerOf(original);
        [...numbersOf(fields)][place](number);
        const file = join(folder, `footer-${place}.parquet`);
        writeFileSync(file, withFooter(original.subarray(0, start), fields));
        for (const backend of parquetBackendNames)
          outcomes.add(await outcomeOf(new ParquetSource(file, { backend }), file));
      }
    }
    expect([...outcomes].sort()).toEqual(['read', 'refused']);
    expect(process.memoryUsage.rss() / 2 ** 20 - before).toBeLessThan(MOST_MIB);
  },
);

test("every bit of the Arrow schema in a footer changed: the columns are the same, or are the decoder's to read", () => {
  const types = { int32: new Int32(), int64: new Int64(), float: new Float32(), boolean: new Bool() };
  const entries = Object.entries(types);
  const schema = new Schema(entries.map(([name, type]) => new Field(name, type, true)));
  const message = Buffer.from(tableToIPC(new Table(schema), 'stream'));
  const shape = { repetition: 'optional', children: 0, otherOrder: false } as const;
  const elements = entries.map(([name]) => ({ name, physicalType: name, ...shape }));
  const read = (arrow: Buffer) =>
    String(
      footerSchema({
        fileBytes: 1000,
        version: 2,
        rows: 0,
        schema: elements,
        rowGroups: [],
        arrowSchema: arrow.toString('base64'),
      }),
    );
  expect(read(message)).toBe(String(schema));
  const before = process.memoryUsage.rss() / 2 ** 20;
  const outcomes = new Set<string>();
  for (let bit = 0; bit < 8 * message.length; bit++) {
    const changed = Buffer.from(message);
    changed[bit >> 3] ^= 1 << (bit & 7);
    outcomes.add(read(changed));
  }
  expect([...outcomes].sort()).toEqual([String(schema), 'undefined']);
  expect(process.memoryUsage.rss() / 2 ** 20 - before).toBeLessThan(MOST_MIB);
});

test.each([2n ** 31n, 2n ** 40n])(
  'a model whose footer says %s rows is refused by its file',
  async (rows) => {
    const model = join(folder, `model-${rows}`);
    const ids = makeVector(Int32Array.of(1, 2));
    const factors = Float32Array.of(1, 2, 3, 4);
    const columns = { user: 'u', item: 'i', rating: 'r', prediction: 'p' };
    const shape = { rank: 2, columns, coldStartStrategy: 'nan', factorflow: {} } as const;
    await saveModel(model, {
      ...shape,
      userIds: ids,
      userFactors: factors,
      itemIds: ids,
      itemFactors: factors,
    });
    const file = join(model, 'userFactors/part-00000.parquet');
    const original = readFileSync(file);
    const { start, fields } = footerOf(original);
    const declare = (of: ThriftStruct) => of.set(3, { ...(of.get(3) as NumberValue), number: rows });
    [fields, ...structsIn(fields, 4)].forEach(declare);
    writeFileSync(file, withFooter(original.subarray(0, start), fields));
    await expect(loadModel(model)).rejects.toThrow(/the metadata say 2 .*userFactors/);
    editMetadata(model, (line) => line.replace(/,"factorflow":.*/, '}'));
    await expect(loadModel(model)).rejects.toThrow(/damaged.*userFactors/);
  },
);

test('the same in each place of a page header', async () => {
  const original = readFileSync(join(goldenFolder, 'full-range-alone.parquet'));
  const { start, fields } = footerOf(original);
  const chunk = structIn(structsIn(structsIn(fields, 4)[0], 1)[0], 3);
  const page = integerIn(chunk, 9) as number;
  const header = encodeThrift(decodeThrift(original.subarray(page)));
  // The header comes back as it was, so its length is known.
  expect(original.subarray(page, page + header.length).equals(Buffer.from(header))).toBe(true);
  const count = [...numbersOf(decodeThrift(header))].length;
  expect(count).toBeGreaterThan(5);
  for (let place = 0; place < count; place++) {
    for (const number of declared) {
      const changed = decodeThrift(header);
      [...numbersOf(changed)][place](number);
      const longer = encodeThrift(changed);
      const grown = footerOf(original).fields;
      const stored = structIn(structsIn(structsIn(grown, 4)[0], 1)[0], 3);
      for (const field of [6, 7])
        stored.set(field, {
          ...(stored.get(field) as NumberValue),
          number: BigInt(integerIn(stored, field) as number) + BigInt(longer.length - header.length),
        });
      const file = join(folder, `page-${place}.parquet`);
      writeFileSync(
        file,
        withFooter(
          Buffer.concat([original.subarray(0, page), longer, original.subarray(page + header.length, start)]),
          grown,
        ),
      );
      for (const backend of parquetBackendNames) await outcomeOf(new ParquetSource(file, { backend }), file);
    }
  }
});

test.each(
  everyNth(['polars-lz4.arrow', 'polars-uncompressed.arrow', 'polars-zstd.arrow', 'polars-lz4.arrows'], 3),
)(
  '2^40 and numbers below 0 in each word of the first and the last kilobyte of an Arrow file: %s',
  async (name) => {
    const original = readFileSync(join(goldenFolder, '../arrow', name));
    const before = process.memoryUsage.rss() / 2 ** 20;
    const outcomes = new Set<string>();
    const words = Array.from({ length: Math.floor(original.length / 4) - 1 }, (_, word) => 4 * word);
    const places = words.filter((at) => at < 1024 || at >= original.length - 1024);
    for (const at of everyNth(places, 3)) {
      for (const number of [2n ** 40n, -1n]) {
        const bytes = Buffer.from(original);
        bytes.writeBigInt64LE(number, at);
        const file = join(folder, `word-${at}-${name}`);
        writeFileSync(file, bytes);
        outcomes.add(await outcomeOf(new ArrowSource(file), file));
      }
    }
    expect([...outcomes].sort()).toEqual(['read', 'refused']);
    expect(process.memoryUsage.rss() / 2 ** 20 - before).toBeLessThan(MOST_MIB);
  },
);
