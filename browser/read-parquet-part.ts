import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { parquetScan } from 'hyparquet/src/scan.js';
import type { DecodedArray } from 'hyparquet/src/types.js';
import { copyRow, type Part, plainFeatures } from './feature-rows.ts';
import { problem, type RemoteFile, TAIL_BYTES } from './remote-file.ts';

/** Reads the ids of a Parquet file, and the numbers of their rows into `target`. */
export async function readParquetPart(file: RemoteFile, width: number, target: Float32Array): Promise<Part> {
  const metadata = await parquetMetadataAsync(file, { initialFetchSize: TAIL_BYTES });
  const names = metadata.schema.map(({ name }) => name);
  const missing = ['id', 'features'].find((name) => !names.includes(name));
  if (missing !== undefined) throw problem(file.url, `the file has no column ${missing}`);
  const parsers = { stringFromBytes: (bytes: Uint8Array) => bytes };
  const columns = ['id', 'features', ...(names.includes('scale') ? ['scale'] : [])];
  const scan = await parquetScan({ file, metadata, columns, parsers });
  const ids: DecodedArray[] = [];
  let done = 0;
  for (const range of scan.ranges) {
    const [own, features, scales] = await Promise.all(
      columns.map((column) => scan.readColumn({ column, ...range })),
    );
    const rows = range.rowEnd - range.rowStart;
    if (own.length !== rows || features.length !== rows)
      throw problem(file.url, `columns have ${own.length} and ${features.length} rows, need ${rows}`);
    if ((done + rows) * width > target.length)
      throw problem(file.url, 'the file has more rows than the metadata say', 'Copy the model again');
    for (let row = 0; row < rows; row++)
      copyRow(
        plainFeatures(features[row], width, scales?.[row], file.url),
        target,
        (done + row) * width,
        width,
        file.url,
      );
    ids.push(own);
    done += rows;
  }
  return { rows: done, ids };
}
