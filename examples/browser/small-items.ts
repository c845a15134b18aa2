/**
 * Copies a model for pages with smaller items: each feature takes 8 bits, or 16 with --float16, in place of
 * 32. With --arrow the items keep their 32 bits, in an Arrow file whose rows a page can read alone. Only
 * factorflow/browser reads the copy; keep the model for Node. The folder OUT must not exist yet.
 *
 *   npm run build && npx node examples/browser/small-items.ts MODEL OUT [--float16 | --arrow]
 *
 * --float16 needs Node 24. Outside this checkout it also needs `npm install parquet-wasm@0.8`.
 */
import { cpSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  Binary,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  Int64,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'factorflow/arrow';
import { Session } from 'factorflow';
import { Compression, Table as ParquetTable, writeParquet, WriterPropertiesBuilder } from 'parquet-wasm/node';

const [model, out, form] = process.argv.slice(2);
if (out === undefined || ![undefined, '--float16', '--arrow'].includes(form))
  throw new Error('give the folder of a model and the folder for its copy, and perhaps --float16 or --arrow');
if (existsSync(out)) throw new Error(`${out} exists already: give a new folder for the copy`);
if (!relative(model, out).startsWith('..')) throw new Error(`${out} is in the folder of the model`);

const session = await Session.create({ device: 'cpu', workers: 1 });
const items = await session.read.parquet(join(model, 'itemFactors')).toArray();
await session.close();
const ids = items.map(({ id }) => id as number | bigint | string);
const features = items.map((row) => Float32Array.from(row.features as Iterable<number>));

/** The values as multiples of `scale`, rounded to whole numbers from -127 to 127, one byte each. */
function inBytes(values: Float32Array): { readonly scale: number; readonly bytes: Uint8Array } {
  const scale = Math.max(...values.map(Math.abs)) / 127 || 1;
  return {
    scale,
    bytes: new Uint8Array(Int8Array.from(values, (value) => Math.round(value / scale)).buffer),
  };
}

const inHalves = (values: Float32Array) => new Uint8Array(Float16Array.from(values).buffer);

const idType = () => {
  if (ids.some((id) => typeof id === 'string')) return new Utf8();
  return ids.some((id) => typeof id === 'bigint' || (id as number) !== ((id as number) | 0))
    ? new Int64()
    : new Int32();
};
const type = idType();
const id = vectorFromArray(type instanceof Int64 ? ids.map(BigInt) : ids, type);

/** Rows of `width` float32 numbers, in an Arrow file without compression. */
function arrowFile(): Uint8Array {
  const rows = new FixedSizeList(features[0].length, new Field('element', new Float32(), false));
  const plain = features.map((values) => Array.from(values));
  return tableToIPC(new Table({ id, features: vectorFromArray(plain, rows) }), 'file');
}

/** Rows of bytes, in a Parquet file without compression. */
function parquetFile(): Uint8Array {
  const small = features.map((values) =>
    form === undefined ? inBytes(values) : { scale: 1, bytes: inHalves(values) },
  );
  const table = new Table({
    id,
    features: vectorFromArray(
      small.map(({ bytes }) => bytes),
      new Binary(),
    ),
    scale: vectorFromArray(Float32Array.from(small, ({ scale }) => scale)),
  });
  const plain = new WriterPropertiesBuilder()
    .setCompression(Compression.UNCOMPRESSED)
    .setDictionaryEnabled(false);
  return writeParquet(ParquetTable.fromIPCStream(tableToIPC(table, 'stream')), plain.build());
}

cpSync(model, out, { recursive: true, filter: (path) => !/(?:user|item)Factors$|userMeans$/.test(path) });
cpSync(join(model, 'itemFactors'), join(out, 'itemFactors'), {
  recursive: true,
  filter: (path) => !/part-\d+\.parquet$/.test(path),
});
const part = join(out, `itemFactors/part-00000.${form === '--arrow' ? 'arrow' : 'parquet'}`);
writeFileSync(part, form === '--arrow' ? arrowFile() : parquetFile());
const before = items.length * features[0].byteLength;
console.log(
  `${items.length} items: features of ${before} bytes are now a file of ${statSync(part).size} bytes`,
);
