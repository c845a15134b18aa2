import type { Compression } from 'parquet-wasm/node';
import { DataError, FactorFlowError } from '../../../engine/errors.ts';
import { messageOf } from '../../files/file-problem.ts';
import type { Encoding } from '../../output/encode-rows.ts';
import type { Codec } from '../backend.ts';
import { WasmInstance } from './wasm-instance.ts';

/** Parquet's numbers for the codecs; 'lz4' is the form every reader understands (LZ4_RAW). */
const compression = {
  uncompressed: 0,
  snappy: 1,
  gzip: 2,
  brotli: 3,
  zstd: 5,
  lz4: 6,
} as const satisfies Record<Codec, Compression>;

/** No row group is cut: the caller has cut the rows. */
const MOST_ROWS = 2 ** 31 - 1;

/** The rows of an Arrow IPC stream as a Parquet file of one row group, or none without rows. */
export function encodeRowGroup(
  stream: Uint8Array,
  { codec, dictionary, file }: Encoding & { readonly format: 'parquet' },
): Uint8Array {
  using instance = WasmInstance.take();
  const { wasm } = instance;
  try {
    return instance.guardSync(() => {
      const properties = new wasm.WriterPropertiesBuilder()
        .setCompression(compression[codec])
        .setMaxRowGroupSize(MOST_ROWS)
        .setDictionaryEnabled(dictionary)
        .build();
      return wasm.writeParquet(wasm.Table.fromIPCStream(stream), properties);
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
