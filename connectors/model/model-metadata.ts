import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import type { JsonObject } from '../../engine/json.ts';
import { fileProblem } from '../files/file-problem.ts';
import { crc32 } from './crc-32.ts';
import {
  decodeMetadata,
  defaults,
  hexOf,
  MODEL_CLASS,
  type ModelMetadata,
  type ModelStorage,
} from './decode-metadata.ts';

/** Most bytes of a metadata file, far above the size of the largest plan. */
const MOST_BYTES = 2 ** 28;
const SPARK_VERSION = '3.5.0';

/** The only line of <model>/metadata/part-00000, without the newline. The same model gives the same line. */
export function encodeMetadata(
  model: ModelMetadata,
  storage: ModelStorage,
  timestamp: number,
  uid?: string,
): string {
  const { columns, coldStartStrategy } = model;
  const sparkReadable = storage.userIdType === 'int32' && storage.itemIdType === 'int32';
  const paramMap = {
    userCol: columns.user,
    itemCol: columns.item,
    predictionCol: columns.prediction,
    coldStartStrategy,
  };
  const reason = `Spark's ALSModel knows int32 ids only; these are ${storage.userIdType} (users) and ${storage.itemIdType} (items)`;
  const factorflow = {
    ...model.factorflow,
    storage: { ...storage, ratingCol: columns.rating, sparkReadable, ...(!sparkReadable && { reason }) },
  };
  const name =
    uid ??
    `ALSModel_${createHash('sha256')
      .update(JSON.stringify([paramMap, model.rank, factorflow]))
      .digest('hex')
      .slice(0, 12)}`;
  return withChecksum({
    class: MODEL_CLASS,
    timestamp,
    sparkVersion: SPARK_VERSION,
    uid: name,
    paramMap,
    defaultParamMap: defaults,
    rank: model.rank,
    factorflow,
  });
}

/**
 * The object as a line. Its last member is the CRC-32 of the line without that member, so damage is found.
 */
function withChecksum(metadata: JsonObject): string {
  const line = JSON.stringify(metadata);
  return `${line.slice(0, -1)},"checksum":"${hexOf(crc32(line))}"}`;
}

/** Reads the line from the first of the files <folder>/part-* that has one. */
export async function readMetadata(
  folder: string,
): Promise<{ readonly metadata: ModelMetadata; readonly storage: ModelStorage | undefined }> {
  try {
    const names = (await readdir(folder)).filter((name) => name.startsWith('part-')).sort();
    for (const name of names) {
      const line = Buffer.from(readRegular(join(folder, name), MOST_BYTES, { phase: 'load' }))
        .toString()
        .split('\n')
        .find((text) => text.trim() !== '');
      if (line !== undefined) return decodeMetadata(line, join(folder, name));
    }
  } catch (error) {
    throw fileProblem(error, 'load', folder);
  }
  throw new DataError('the model has no metadata (no line in any part-* file)', {
    phase: 'load',
    file: folder,
  });
}
