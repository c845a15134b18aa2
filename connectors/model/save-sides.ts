import type { Vector } from 'apache-arrow';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import { dataSetName } from '../../engine/partition.ts';
import { areStored, type RowParts, wholeRows } from '../../engine/row-parts.ts';
import type { Executor } from '../../engine/run/device.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { firstDescent, idCount, idText, idTypeOf, joinIds } from './id-column.ts';
import {
  storedBytes,
  type FactorPart,
  factorParts,
  sharedSide,
  writeFactorPart,
  writeFactorsContract,
  type WrittenPart,
  type WrittenTable,
} from './write-factors.ts';

const STAGE = 'write-factors';

/** A table of a model, and the folder to write it to. */
export interface SavedSide {
  readonly folder: string;
  readonly table: WrittenTable;
}

export interface SaveSidesOptions {
  readonly signal?: AbortSignal;
  readonly executor?: Executor;
  readonly metrics?: RunMetrics;
  /** Called when the threads have started on all parts. */
  readonly underWay?: (() => void) | undefined;
}

/**
 * Writes each side as <directory>/<folder>/part-00000.parquet, ... The CPU device's threads share the parts
 * of all sides.
 */
export async function saveSides(
  directory: string,
  sides: readonly SavedSide[],
  { signal = new AbortController().signal, executor, metrics = new RunMetrics(), underWay }: SaveSidesOptions,
): Promise<void> {
  for (const { folder } of sides) await mkdir(join(directory, folder));
  const parts = sides.flatMap(({ folder, table }, side) =>
    factorParts(idCount(table.ids), table.factors.columns).map(({ name, from, to }) => ({
      side,
      part: { file: join(directory, folder, name), from, to } satisfies FactorPart,
    })),
  );
  const place = executor?.devices.find(({ info }) => info.kind === 'cpu')?.info.place;
  // Parts in files are read in order by one thread, so that memory holds one of them.
  const here = (side: number) =>
    executor === undefined || place === undefined || areStored(sides[side].table.factors);
  for (const { side, part } of parts.filter((one) => here(one.side))) {
    await writeFactorPart(sides[side].table, part, () => signal.aborted);
    throwIfAborted(signal, 'save');
  }
  if (executor === undefined || place === undefined) return;
  const name = dataSetName('save');
  const ref = (what: string, side: number) => ({ name: `${name}/${what}`, partition: side, version: 0 });
  const given = sides.flatMap(({ table }, side): Given[] => {
    if (here(side)) return [];
    const { ids, factors } = sharedSide(table);
    return [
      [ref('ids', side), ids, place],
      [ref('factors', side), factors, place],
    ];
  });
  const steps = new StepList(writeFactorsContract);
  for (const { side, part } of parts.filter((one) => !here(one.side))) {
    const { parts: _arrays, order: _places, ...rows } = sides[side].table.factors;
    steps.task(STAGE, place, {
      kernel: 'write-factors',
      inputs: { ids: ref('ids', side), factors: ref('factors', side) },
      outputs: {},
      params: { ...part, ...rows } satisfies WrittenPart,
    });
  }
  await Holdings.within({ executor, metrics, signal, events: noEvents }, async (held) => {
    const written = runSteps(steps.steps, held, { given });
    underWay?.();
    await written;
  });
}

/** Ids and factors as a table to save. Throws UsageError if they do not fit together. */
export function tableOf(
  side: string,
  ids: Vector,
  given: Float32Array | RowParts,
  rank: number,
): WrittenTable {
  const type = idTypeOf(ids.type);
  if (type === undefined)
    throw new UsageError(`${side} ids are ${String(ids.type)}, need int32, int64 or utf8`, { phase: 'save' });
  if (ids.nullCount > 0) throw new UsageError(`${ids.nullCount} ${side} ids are null`, { phase: 'save' });
  const factors = given instanceof Float32Array ? wholeRows(given, rank) : given;
  if (factors.rows * factors.columns !== ids.length * rank)
    throw new UsageError(
      `${side} factors have ${factors.rows * factors.columns} values, need ${ids.length} x ${rank}`,
      { phase: 'save' },
    );
  const table = { ids: joinIds(type, ids.data), factors };
  const descent = firstDescent(table.ids);
  if (descent !== undefined)
    throw new UsageError(
      `${side} ids must ascend: ${idText(table.ids, descent)} in row ${descent + 1} comes after ${idText(table.ids, descent - 1)}`,
      { phase: 'save' },
    );
  return table;
}

/** Approximate bytes of the part files. */
export function bytesOf(sides: readonly SavedSide[]): number {
  return sides.reduce((sum, { table: { ids, factors } }) => sum + storedBytes(ids, factors), 0);
}
