/**
 * The order of test files: those that take longest come first, so that no processor waits for one of them at
 * the end of a run. The others follow in Vitest's order, by their times before or by their sizes.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * More than 10 seconds of a processor. Files of a few lines are among them, which Vitest would run last,
 * alone.
 */
const longest = [
  'api/rows/duckdb-plans',
  'examples',
  'gpu/kernels/update-kernels',
  'gpu/large-ranks',
  'cli/training/checkpoints',
  'gpu/kernels/soft-tensors',
  'operators/measured-memory',
  'engine/bad-conditions',
  'gpu/sgd/sgd-blocks',
  'project/installed',
  'api/rows/exchanges',
  'gpu/out-of-core',
  'gpu/sgd/sgd-kernels',
  'reproduce/command',
  'operators/als/als-grids',
  'operators/als/als-large-ranks',
  'operators/table5',
  'gpu/als-grids',
  'gpu/implicit',
  'gpu/half-iteration',
  'gpu/kernels/equations',
  'cli/recommend',
  'cli/data/files',
  'cli/evaluate',
  'cli/training/gpu',
  'api/sgd-in-bands',
  'cli/training/doctor-gpu',
  'cli/training/memory-shapes',
  'cli/training/tune',
  'cli/training/train',
  'worker/gpu',
  'api/many-fits',
].map((name) => join(import.meta.dirname, '..', `${name}.test.ts`));

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = longest.filter((file) => !existsSync(file));
    if (missing.length > 0) throw new Error(`test/support/longest-first.ts names ${missing.join(', ')}`);
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = longest.indexOf(moduleId);
      return place < 0 ? longest.length : place;
    };
    return (await super.sort(files)).toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}
