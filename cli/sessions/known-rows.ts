import type { Dataset } from '../../api/dataset.ts';
import { rootSource } from '../../engine/logical-plan.ts';

/** How many rows the files say that they have; undefined where only reading them would tell (text, Arrow). */
export async function knownRows(dataset: Dataset): Promise<number | undefined> {
  return (await rootSource(dataset.plan).statistics?.())?.rows;
}
