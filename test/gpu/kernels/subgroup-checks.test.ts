/**
 * The checks of kernels for subgroups and tensor cores, which no software adapter runs, on an emulation of
 * these kernels.
 */
import { describe, expect, it } from 'vitest';
import { CounterRandom } from '../../../engine/random.ts';
import { subgroupChecks } from '../../../gpu/checks/checks.ts';
import { halfIterationChecks } from '../../../gpu/checks/half-iteration.check.ts';
import { emulatedGpu } from '../../support/gpu/emulated-gpu.ts';
import { gradients } from '../../support/gpu/emulated-systems.ts';
import { sampleOf } from '../../support/gpu/run-checks.ts';

const quick = subgroupChecks.filter(({ variant }) =>
  /rank (1|7|10|12|20|24|32|40)\b|not finite/.test(variant),
);
const kernels = [...new Set(subgroupChecks.map(({ name }) => name))];

describe('conjugate gradients with one reduction a step', () => {
  it('end at rounding for any number of steps of a small system', () => {
    const random = new CounterRandom(7);
    for (let number = 0; number < 20_000; number++) {
      const draw = (at: number) => Math.fround(random.uniform(4 * number + at));
      const [a, b, ratings] = [
        Math.fround(50 * draw(0)),
        Math.fround(2 + 50 * draw(1)),
        1 + Math.floor(200 * draw(2)),
      ];
      const [x] = gradients(
        { a: Float32Array.of(a), b: Float32Array.of(b), s: new Float32Array(1), t: 0 },
        Float32Array.of(draw(3) - 0.5),
        6,
        { shift: 0.05 * ratings },
        ratings,
        false,
      );
      expect(x / (b / (a + 0.05 * ratings))).toBeCloseTo(1, 3);
    }
  });
});

describe('checks of kernels for subgroups and tensor cores', () => {
  const gpu = emulatedGpu();

  it('exist for each', () => {
    expect(kernels).toEqual([
      'normal-equations-tensor',
      'update-tensor',
      'update-short',
      'normal-equations-int8',
      'update-int8',
      'solve-cg-registers',
    ]);
    for (const name of kernels)
      expect(quick.filter((check) => check.name === name).length).toBeGreaterThan(1);
  });

  for (const check of sampleOf(quick)) {
    it(`pass with what ${check.name} should compute: ${check.variant}`, async () => {
      const { error, limit } = await check.run(gpu);
      expect(error).toBeLessThanOrEqual(limit);
    });
  }

  it('pass for half-iterations by every variant on tensor cores, with biases where ratings lie in the padding of θ and where they do not', async () => {
    const shapes = [33, 42].map((rank) => ({ rank, solver: 'cg', biases: true }) as const);
    const checks = halfIterationChecks(gpu.info, 200, shapes).filter(({ variant }) =>
      /^(tensor|int8)/.test(variant),
    );
    expect(checks.length).toBe(24);
    for (const { variant, run } of checks) {
      const { error, limit } = await run(gpu);
      expect(error, variant).toBeLessThanOrEqual(limit);
    }
  });

  const faults: Readonly<
    Record<string, (outputs: Readonly<Record<string, { readonly bytes: ArrayBuffer }>>) => void>
  > = {
    'one sum is off': ({ slots, factors }) => {
      const values = new Float32Array((factors ?? slots).bytes);
      values[0] *= 1.02;
    },
    'one row is skipped': ({ slots, factors }) => new Float32Array((factors ?? slots).bytes).fill(3e7, 0, 16),
    'all is NaN': ({ slots, factors }) => new Float32Array((factors ?? slots).bytes).fill(NaN),
  };
  for (const [fault, spoil] of Object.entries(faults)) {
    it(`fail where ${fault}`, async () => {
      const spoiled = emulatedGpu((_kernel, buffers) => spoil(buffers));
      for (const name of kernels) {
        const check = quick.find((one) => one.name === name && /rank (10|40)\b/.test(one.variant));
        const { error, limit } = await check!.run(spoiled);
        expect(error <= limit, name).toBe(false);
      }
    });
  }

  it('fail where the mirror in float16 is another row, a bias is lost, or a bad row is not named', async () => {
    const spoiled = emulatedGpu((_kernel, { half, bias, status }) => {
      if (half) new Uint16Array(half.bytes).reverse();
      if (bias) new Float32Array(bias.bytes).fill(0);
      if (status) new Uint32Array(status.bytes).fill(0xffff_ffff);
    });
    for (const check of quick.filter(
      ({ name, variant }) => !name.startsWith('normal-equations') && /biases|not finite/.test(variant),
    )) {
      const { error, limit } = await check.run(spoiled);
      expect(error <= limit, check.variant).toBe(false);
    }
  });
});
