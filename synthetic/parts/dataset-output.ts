import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileProblem } from '../../connectors/files/file-problem.ts';
import { atomicOutput } from '../../connectors/output/atomic-output.ts';
import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import { isDatasetEntry } from '../../connectors/parquet/part-names.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { ratingParts } from '../preset.ts';
import { addFiles, type PartSummary } from './part-files.ts';

/**
 * The version of the generator; it increases when the same preset and seed give other bytes than before. 2:
 * part files end with a range of users, so that threads write them in parallel; the ratings and their order
 * are unchanged from 1.
 */
export const GENERATOR_VERSION = 2;

/** Default number of ratings in a part file (approximate). */
export const RATINGS_PER_PART = 1 << 22;

export interface DatasetOutput {
  readonly output: string;
  readonly overwrite: boolean | undefined;
  /** Folders of the data set; "" is the data set itself. */
  readonly parts: readonly string[];
}

/**
 * Creates a folder with the parts' folders, calls `fill`, and adds dataset.json with the description that it
 * returns. The folder appears completely or not at all. It is registered in this thread, so that the process
 * can remove it when it is asked to end.
 *
 * @throws UsageError for output that must not be replaced.
 */
export async function writeDatasetFolder<Filled extends { readonly description: object }>(
  { output, overwrite, parts }: DatasetOutput,
  fill: (folder: string) => Promise<Filled>,
): Promise<Filled> {
  const pending = await atomicOutput(output, {
    kind: 'folder',
    overwrite,
    recognizes: (path) => recognizes(path, parts),
  });
  try {
    for (const part of parts) await mkdir(join(pending.temporary, part), { recursive: true });
    const filled = await fill(pending.temporary);
    await writeDescription(join(pending.temporary, 'dataset.json'), filled.description);
    await pending.commit();
    return filled;
  } catch (error) {
    throw await pending.fail(error);
  }
}

/** The files of all tasks by part, with the folders' final names. */
export function summarizeFiles(
  outcomes: readonly TaskOutcome[],
  output: string,
  parts: readonly string[],
): Record<string, WriteSummary> {
  let sums: Readonly<Record<string, PartSummary>> = {};
  for (const { values } of outcomes)
    sums = addFiles(sums, (values?.parts ?? {}) as unknown as Record<string, PartSummary>);
  return Object.fromEntries(
    parts.map((part) => [
      part,
      { path: part === '' ? output : join(output, part), ...(sums[part] ?? { rows: 0, bytes: 0, files: 0 }) },
    ]),
  );
}

async function writeDescription(file: string, description: object): Promise<void> {
  try {
    await writeFile(file, `${JSON.stringify(description, undefined, 2)}\n`);
  } catch (error) {
    throw fileProblem(error, 'write', file);
  }
}

function recognizes(path: string, parts: readonly string[]): boolean {
  if (path === 'dataset.json') return true;
  const part = ratingParts.find((name) => path.startsWith(`${name}/`));
  const inside = part === undefined ? path : path.slice(part.length + 1);
  if (part === undefined && !parts.includes('')) return false;
  return inside === '' || isDatasetEntry(inside);
}
