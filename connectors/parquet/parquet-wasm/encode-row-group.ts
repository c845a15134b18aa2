import { type Data, DataType, RecordBatchReader } from 'apache-arrow';
import type { Compression } from 'parquet-wasm/node';
import { DataError, FactorFlowError } from '../../../engine/errors.ts';
import { messageOf } from '../../files/file-problem.ts';
import type { Encoding } from '../../output/encode-rows.ts';
import type { Codec } from '../backend.ts';
import { storableRows } from '../write/storable-rows.ts';
import { withUuids } from '../write/uuid-elements.ts';
import { WasmInstance } from './wasm-instance.ts';

/** Parquet's numbers of codecs. 'lz4' is LZ4_RAW, which every reader supports. */
const compression = {
  uncompressed: 0,
  snappy: 1,
  gzip: 2,
  brotli: 3,
  zstd: 5,
  lz4: 6,
} as const satisfies Record<Codec, Compression>;

/** The caller has already cut the rows into groups, and the encoder must not cut them further. */
const MOST_ROWS = 2 ** 31 - 1;

/**
 * Encodes the rows of an Arrow IPC stream as a Parquet file of one row group; of none if there are no rows.
 */
export function encodeRowGroup(
  stream: Uint8Array,
  { codec, dictionary, file }: Encoding & { readonly format: 'parquet' },
): Uint8Array {
  const rows = storableRows(stream, file);
  using instance = WasmInstance.take();
  const { wasm } = instance;
  try {
    return instance.guardSync(() => {
      const properties = new wasm.WriterPropertiesBuilder()
        .setCompression(compression[codec])
        .setMaxRowGroupSize(MOST_ROWS)
        .setDictionaryEnabled(dictionary);
      const plain = dictionary && codec !== 'uncompressed' ? repeatingColumns(rows) : [];
      const built = plain.reduce((all, name) => all.setColumnDictionaryEnabled(name, false), properties);
      return withUuids(wasm.writeParquet(wasm.Table.fromIPCStream(rows), built.build()), rows);
    });
  } catch (error) {
    if (error instanceof FactorFlowError) throw error;
    throw new DataError(`the Parquet encoder refused the data: ${messageOf(error)}`, {
      phase: 'write',
      file,
      cause: error,
    });
  }
}

/** Number of rows sampled to find repeating columns, and the share of them that must repeat. */
const SAMPLED_ROWS = 4096;
const MOSTLY = 7 / 8;

/**
 * Number columns in which most rows repeat the row before, such as sorted ids. They need no dictionary: a
 * codec alone stores them as small as dictionary codes, in a quarter of the time.
 */
function repeatingColumns(stream: Uint8Array): string[] {
  const reader = RecordBatchReader.from(stream);
  const first = reader.next();
  if (first.done || first.value.numRows < SAMPLED_ROWS) return [];
  const { children } = first.value.data;
  return first.value.schema.fields
    .filter(({ type }, i) => (DataType.isInt(type) || DataType.isFloat(type)) && repeats(children[i]))
    .map(({ name }) => name);
}

function repeats({ values, nullCount }: Data): boolean {
  let same = 0;
  for (let row = 1; row < SAMPLED_ROWS; row++) if (values[row] === values[row - 1]) same++;
  return nullCount === 0 && same >= MOSTLY * SAMPLED_ROWS;
}
