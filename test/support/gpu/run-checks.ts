import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KernelCheck } from '../../../gpu/checks/support/check.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { byValues, type Factors, isDeep } from '../deep.ts';
import { noGpu, openTestGpu } from './open-gpu.ts';

/** Tasks that solve rows: equations.test.ts compares them, and loss-and-top-n.test.ts all others. */
export const solvesRows = /-(equations|residuals|products|gradients|rows)$|^(gram|update)/;

/** A test for each check of a sample, or in the deep run for each. Checks that the adapter cannot run say so. */
export function describeChecks(title: string, checks: readonly KernelCheck[]): void {
  describe.skipIf(noGpu)(title, () => {
    let gpu: Gpu;
    beforeAll(async () => {
      gpu = await openTestGpu();
    });
    afterAll(() => gpu?.close());

    for (const check of sampleOf(checks)) {
      it(`${check.name} agrees with its twin: ${check.variant}`, async (context) => {
        if (check.admitted?.(gpu) === false) {
          console.warn(
            `SKIPPED: ${check.name}, ${check.variant}: ${gpu.info.name} lacks what the variant needs`,
          );
          context.skip();
        }
        const { error, limit } = await check.run(gpu);
        expect(error).toBeLessThanOrEqual(limit);
      });
    }
  });
}

const rankOf = ({ variant }: KernelCheck): number => Number(/\brank (\d+)/.exec(variant)?.[1] ?? 0);

/** Checks of a kernel in `npm test`. */
const MOST = 2;

/**
 * Checks in which most values of a kernel's options occur. A software adapter compiles most kernels for a
 * second or more, and longer at large ranks, which are left out where the kernel has smaller ones.
 */
export function sampleOf(checks: readonly KernelCheck[]): KernelCheck[] {
  if (isDeep) return [...checks];
  return [...new Set(checks.map(({ name }) => name))].flatMap((name) => {
    const own = checks.filter((check) => check.name === name);
    const least = Math.min(...own.map(rankOf).filter((rank) => rank > 0));
    const some = own.filter((check) => rankOf(check) <= Math.max(128, least + 100));
    const options = some.map(optionsOf);
    const names = [...new Set(options.flatMap((own) => Object.keys(own)))];
    const absent = Object.fromEntries(names.map((option) => [option, 'absent']));
    return byValues(some, (check) => ({ ...absent, ...options[some.indexOf(check)] }), MOST);
  });
}

/**
 * "rank 100, biases, 4 threads a rating": the number of tiles of 16 features and whether they are filled, and each
 * other part with its numbers.
 */
function optionsOf({ variant }: KernelCheck): Factors {
  const parts = variant.split(', ').flatMap((part) => {
    const [name, numbers] = [part.replaceAll(/\d+/g, '#'), part.match(/\d+/g)?.join(' ') ?? 'present'];
    // The numbers of rows follow from the rank.
    if (name.startsWith('rows ')) return [[name, 'present']];
    if (name !== 'rank #') return [[name, numbers]];
    const rank = Number(numbers);
    return [
      ['tiles', rank <= 16 ? 'one' : rank <= 128 ? 'some' : 'many'],
      ['filled', rank % 16 === 0],
    ];
  });
  return Object.fromEntries(parts);
}
