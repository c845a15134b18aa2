import { describe, expect, it } from 'vitest';
import { chooseUpdate } from '../../../gpu/update/choice/choose.ts';
import { everyVariant, neighboursOf, updateVariants } from '../../../gpu/update/choice/variants.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { plainGpu, tensorGpu } from '../../support/gpu/gpu-info.ts';

const problem: UpdateProblem = {
  rank: 100,
  solver: 'cg',
  cgSteps: 6,
  precision: 'auto',
  biases: false,
  rows: 480_189,
  columns: 17_770,
  ratings: 99_072_112,
  iterations: 100,
  longest: 15_250,
  largestRating: 5,
};

describe('variants', () => {
  it('have names of their own, the rule first', () => {
    for (const info of [tensorGpu, plainGpu]) {
      const names = everyVariant(info, problem).map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
      expect(names.slice(0, updateVariants(info, problem).length)).toEqual(
        updateVariants(info, problem).map(({ name }) => name),
      );
    }
    expect(updateVariants(tensorGpu, problem)[0].name).toBe('tensor-fused-short64');
    expect(updateVariants(plainGpu, problem)[0].name).toBe('tiled8-f32');
  });

  it('compute as their names say', () => {
    const named = (name: string) => everyVariant(tensorGpu, problem).find((variant) => variant.name === name);
    expect(named('tensor-fused-short32-to8192-bin16')).toMatchObject({
      short: 32,
      fused: { longest: 8192, bin: 16 },
      sum: { bin: 16 },
    });
    expect(named('tiled8-f32')).toMatchObject({ sum: { lanes: 92, rows: 1, teams: 3, loads: 4 } });
    expect(named('tiled8-f16-threads64')).toMatchObject({
      precision: 'f16',
      sum: { tile: 8, lanes: 48, rows: 1 },
    });
    expect(named('tensor-to1024')).toBeUndefined();
  });

  it('that keep x >= 0 sum A and leave it to its solver', () => {
    const nonnegative: UpdateProblem = { ...problem, solver: 'nonnegative' };
    for (const implicit of [false, true]) {
      const variants = updateVariants(tensorGpu, { ...nonnegative, implicit });
      expect(variants.map(({ name }) => name)).toEqual([
        'tensor',
        ...(implicit ? [] : ['int8']),
        'tiled8-f32',
        'tiled4-f32',
        'tiled8-f16',
        'tiled4-f16',
      ]);
      expect(variants.every(({ short, fused }) => short === 0 && fused === undefined)).toBe(true);
    }
    expect(chooseUpdate(tensorGpu, nonnegative)).toMatchObject({ variant: 'tensor', precision: 'f16' });
  });

  it('have the number of ratings at a time that was measured to be best for the rank', () => {
    const bins = (rank: number) => {
      const { sum, fused, halfA } = updateVariants(tensorGpu, { ...problem, rank })[0];
      return { sum: 'bin' in sum ? sum.bin : 0, fused: fused?.bin, halfA };
    };
    expect(bins(64)).toEqual({ sum: 32, fused: 32, halfA: false });
    expect(bins(70)).toEqual({ sum: 64, fused: 64, halfA: false });
    expect(bins(88)).toEqual({ sum: 64, fused: 32, halfA: false });
    expect(bins(100)).toEqual({ sum: 32, fused: 32, halfA: false });
    expect(bins(128)).toEqual({ sum: 48, fused: 64, halfA: false });
    expect(bins(200)).toEqual({ sum: 96, fused: 64, halfA: true });
    // Bins shrink to fit a smaller workgroup memory.
    expect(
      updateVariants(
        { ...tensorGpu, limits: { ...tensorGpu.limits, workgroupBytes: 24576 } },
        { ...problem, rank: 200 },
      )[0],
    ).toMatchObject({ sum: { bin: 32 }, fused: { bin: 32, halfA: true } });
  });

  it('solve on tensor cores in place of registers where that was measured to be faster', () => {
    const fused = (rank: number, name: string, biases = false) =>
      everyVariant(tensorGpu, { ...problem, rank, biases }).find((variant) => variant.name === name)?.fused;
    expect(fused(64, 'int8-fused-short32')).toMatchObject({ halfA: false });
    expect(fused(100, 'int8-fused-short64')).toMatchObject({ halfA: true, room: 6 });
    expect(fused(100, 'int8-fused-short64', true)).toMatchObject({ halfA: true, room: 6 });
    expect(fused(128, 'int8-fused-short64', true)).toMatchObject({ halfA: false });
    expect(fused(128, 'int8-fused-short64-cores', true)).toMatchObject({ halfA: true });
    expect(fused(100, 'int8-fused-short64-registers')).toMatchObject({ halfA: false, room: undefined });
    for (const rank of [136, 152])
      for (const biases of [false, true])
        expect(fused(rank, 'int8-fused-short64', biases)).toMatchObject({ halfA: true, room: 13 });
    expect(fused(160, 'int8-fused-short64')).toMatchObject({ halfA: true, room: 26 });
    expect(fused(136, 'tensor-fused-short64')).toMatchObject({ halfA: true, room: 13, bin: 32 });
    expect(fused(136, 'tensor-fused-short64', true)).toMatchObject({ halfA: true, room: 12, bin: 32 });
    expect(fused(144, 'tensor-fused-short64', true)).toMatchObject({ halfA: false, bin: 64 });
  });

  it('are in 8 bits by rule where the adapter multiplies so and data are explicit', () => {
    const byRule = (change: Partial<UpdateProblem>, info = tensorGpu) =>
      chooseUpdate(info, { ...problem, ...change });
    expect(byRule({})).toMatchObject({
      variant: 'int8-fused-short64',
      precision: 'int8',
      reason: expect.stringContaining('multiplies in 8 bits'),
    });
    expect([40, 64, 128, 136, 152, 256].map((rank) => byRule({ rank, biases: false }).variant)).toEqual([
      'int8-fused-short32',
      'int8-fused-short32',
      'int8-fused-short64',
      'int8-fused-short64',
      'int8-fused-short64',
      'int8-fused-short64',
    ]);
    expect([32, 64, 128, 136, 256].map((rank) => byRule({ rank, biases: true }).variant)).toEqual([
      'tensor-fused-short32',
      'int8-fused-short32',
      'int8-fused-short64',
      'int8-fused-short64',
      'int8-fused-short64',
    ]);
    const float16 = [
      { precision: 'f16' as const },
      { implicit: true },
      { solver: 'cholesky' as const },
      { solver: 'nonnegative' as const },
    ];
    expect(float16.map((change) => byRule(change).precision)).toEqual(float16.map(() => 'f16'));
    expect(byRule({ largestRating: 20_000 }).precision).toBe('f32');
    expect(
      byRule({}, { ...tensorGpu, features: tensorGpu.features.filter((one) => one !== 'int8') }).variant,
    ).toBe('tensor-fused-short64');
  });

  it('are taken when they are asked for by name, and refused with the existing names', () => {
    expect(chooseUpdate(plainGpu, { ...problem, kernel: 'tiled8-f32-threads64' })).toMatchObject({
      variant: 'tiled8-f32-threads64',
      precision: 'f32',
      reason: expect.stringContaining('as requested'),
    });
    expect(() => chooseUpdate(plainGpu, { ...problem, kernel: 'tensor' })).toThrow(
      /no kernel tensor .*There are: tiled8-f32, tiled4-f32.* doctor --tune/,
    );
    expect(() =>
      chooseUpdate(plainGpu, { ...problem, kernel: 'tiled8-f32-threads64', precision: 'f16' }),
    ).toThrow(/computes in f32/);
  });

  it('are neighbours where their names differ in one part', () => {
    expect(neighboursOf('tensor-short64', everyVariant(tensorGpu, problem)).map(({ name }) => name)).toEqual([
      'tensor-fused-short64',
      'tensor-short32',
      'tensor',
      'tensor-short64-bin16',
      'tensor-short64-bin64',
    ]);
  });
});
