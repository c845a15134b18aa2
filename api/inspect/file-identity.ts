import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { resolveDataset } from '../../connectors/files/dataset-path.ts';
import { knownExtensions } from '../../connectors/files/format-names.ts';
import { isUrl, STANDARD_STREAM } from '../../connectors/files/path-kinds.ts';
import { publicPath } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';

/** The files at the paths with their sizes and times, by which a search recognizes its ratings. */
export async function identityOf(paths: readonly string[]): Promise<JsonObject[]> {
  const onDisk = paths.filter((path) => path !== STANDARD_STREAM);
  const { files } =
    onDisk.length === 0
      ? { files: [] }
      : await resolveDataset(onDisk, { extensions: knownExtensions, partitions: 'none' });
  return Promise.all(
    files.map(async ({ file }): Promise<JsonObject> => {
      if (isUrl(file)) return { file: publicPath(file) };
      const { size, mtimeMs } = await stat(file);
      return { file: resolve(file), size, changed: mtimeMs };
    }),
  );
}
