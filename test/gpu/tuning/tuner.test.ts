import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { kernelTexts } from '../../../gpu/generated/kernels-wgsl.ts';
import type { TimeVariantsTask } from '../../../gpu/handler.ts';
import { KernelTuner, type TunedKernels } from '../../../gpu/update/choice/tuner.ts';
import { cacheFolder } from '../../../gpu/probe/cache-folder.ts';
import { TunerCache } from '../../../gpu/update/choice/tuner-cache.ts';
import { chooseUpdate, type TunedVariant } from '../../../gpu/update/choice/choose.ts';
import { sampleRows } from '../../../gpu/update/choice/time-variants.task.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { updateVariants } from '../../../gpu/update/choice/variants.ts';
import { tensorGpu } from '../../support/gpu/gpu-info.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

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

const folder = temporaryFolder();

describe('samples', () => {
  const lengths = Int32Array.from({ length: 1000 }, (_, row) => 1 + (row % 7));
  const offsets = new Int32Array(1001);
  lengths.forEach((length, row) => (offsets[row + 1] = offsets[row] + length));
  const block = {
    offsets,
    indices: Uint32Array.from({ length: offsets[1000] }, (_, k) => k),
    values: Float32Array.from({ length: offsets[1000] }, (_, k) => k),
  };

  it('of a block that is hardly larger are the block', () => {
    expect(sampleRows(block, 3000)).toBe(block);
  });

  it('are whole rows from all over it', () => {
    const sample = sampleRows(block, 400);
    const rows = sample.offsets.length - 1;
    expect(sample.indices.length).toBeGreaterThan(300);
    expect(sample.indices.length).toBeLessThan(500);
    for (let row = 0; row < rows; row++) {
      const own = Array.from(sample.indices.subarray(sample.offsets[row], sample.offsets[row + 1]));
      const from = offsets.indexOf(own[0]);
      expect(from).toBeGreaterThanOrEqual(0);
      expect(own).toEqual(Array.from(block.indices.subarray(offsets[from], offsets[from + 1])));
      expect(sample.values[sample.offsets[row]]).toBe(own[0]);
    }
    expect(sample.indices.at(-1)).toBeGreaterThan(0.98 * offsets[1000]);
  });
});

/** A cache that keeps nothing. */
const nowhere: TunedKernels = { find: async () => undefined, keep: async () => undefined };

/** A measurement by names of variants, and the requests it gets. */
function measuring(milliseconds: (name: string) => number | null) {
  const requests: TimeVariantsTask['params'][] = [];
  const measure = async (params: TimeVariantsTask['params']): Promise<TimeVariantsTask['values']> => {
    requests.push(params);
    const times = params.variants.map((variant) => ({
      variant,
      milliseconds: milliseconds(variant),
      runs: 7,
    }));
    return { times, rows: 1000, ratings: 2_000_000, clock: 'gpu' };
  };
  return { requests, measure };
}

const brief = { seconds: 5, thorough: false };

describe('the tuner', () => {
  it('takes the fastest, notes it, and chooses it for similar problems', async () => {
    const tuner = new KernelTuner(tensorGpu, nowhere);
    const { requests, measure } = measuring((name) =>
      name === 'tensor-fused' ? 12.1 : name.startsWith('tiled') ? 14 : 15,
    );
    const tuning = await tuner.tune(problem, brief, measure);
    expect(tuning).toMatchObject({
      variant: 'tensor-fused',
      reason: 'measured fastest of 10: 12.1 ms against 14.0 ms of tiled8-f32, sample of 2,000,000 ratings',
    });
    expect(requests).toHaveLength(1);
    const names = updateVariants(tensorGpu, problem)
      .filter(({ name }) => /^(tensor|int8-fused)/.test(name))
      .map(({ name }) => name);
    expect(requests[0].variants.slice(0, 2)).toEqual([names[0], names[0].replace('tensor', 'int8')]);
    expect([...requests[0].variants].sort()).toEqual([...names, 'tiled8-f32'].sort());
    expect(
      chooseUpdate(tensorGpu, problem, await tuner.known({ ...problem, ratings: problem.ratings * 1.1 })),
    ).toMatchObject({ variant: 'tensor-fused', reason: expect.stringContaining('measured fastest of 10') });
    expect(await tuner.known({ ...problem, rank: 64 })).toBeUndefined();
    expect(await tuner.known({ ...problem, longest: 200 })).toBeUndefined();
  });

  it('goes on while a variant next to the fastest is faster, when it is thorough', async () => {
    const { requests, measure } = measuring((name) => 20 - name.split('-').length);
    const { variant, times } = await new KernelTuner(tensorGpu, nowhere).tune(
      problem,
      { seconds: Infinity, thorough: true },
      measure,
    );
    expect(variant.split('-')).toHaveLength(6);
    expect(requests.length).toBeGreaterThan(3);
    expect(new Set(times.map((time) => time.variant)).size).toBe(times.length);
    expect(requests[1].best).toBe(17);
  });

  it('skips variants that fail, and takes the rule where all fail', async () => {
    const failing = measuring((name) => (name === 'tensor' ? 3 : null));
    expect(await new KernelTuner(tensorGpu, nowhere).tune(problem, brief, failing.measure)).toMatchObject({
      variant: 'tensor',
      reason: expect.stringContaining('fastest of 1: 3.00 ms, sample'),
    });
    const tuner = new KernelTuner(tensorGpu, nowhere);
    expect(await tuner.tune(problem, brief, measuring(() => null).measure)).toMatchObject({
      variant: 'int8-fused-short64',
      reason: expect.stringContaining('rule'),
    });
    expect(await tuner.known(problem)).toBeUndefined();
  });

  it('measures variants that may be taken: float32 alone if requested or for large ratings', async () => {
    for (const exact of [
      { ...problem, precision: 'f32' as const },
      { ...problem, largestRating: 20_000 },
    ]) {
      const { requests, measure } = measuring(() => 1);
      await new KernelTuner(tensorGpu, nowhere).tune(exact, brief, measure);
      expect(requests[0].variants).toEqual(['tiled8-f32', 'tiled4-f32']);
    }
  });

  it('pays on hardware, once, for a large problem, unless a kernel is requested', async () => {
    const tuner = new KernelTuner(tensorGpu, nowhere);
    expect(await tuner.pays(problem)).toBe(true);
    expect(await tuner.pays({ ...problem, kernel: 'tensor' })).toBe(false);
    expect(await tuner.pays({ ...problem, ratings: 9_000_000 })).toBe(false);
    expect(await tuner.pays({ ...problem, rank: 1024 })).toBe(false);
    expect(await new KernelTuner({ ...tensorGpu, software: true }, nowhere).pays(problem)).toBe(false);
    await tuner.tune(problem, brief, measuring(() => 1).measure);
    expect(await tuner.pays(problem)).toBe(false);
  });

  it('remembers through the cache, for this adapter alone', async () => {
    const cache = new TunerCache(join(folder, 'remembered'));
    await new KernelTuner(tensorGpu, cache).tune(problem, brief, measuring((name) => name.length).measure);
    expect(
      await new KernelTuner(tensorGpu, new TunerCache(join(folder, 'remembered'))).known(problem),
    ).toMatchObject({ variant: 'tensor' });
    expect(await new KernelTuner({ ...tensorGpu, name: 'Tensor 10' }, cache).known(problem)).toBeUndefined();
  });
});

describe('the cache of measured kernels', () => {
  const tuned: TunedVariant = { variant: 'tensor', reason: 'measured' };

  it('is in the cache folder of the system, or in the folder that the environment names', () => {
    expect(cacheFolder({ FACTORFLOW_CACHE_DIR: '/x' }, 'linux', '/home/a')).toBe('/x');
    expect(cacheFolder({ XDG_CACHE_HOME: '/c' }, 'linux', '/home/a')).toBe(join('/c', 'factorflow'));
    expect(cacheFolder({}, 'linux', '/home/a')).toBe(join('/home/a', '.cache', 'factorflow'));
    expect(cacheFolder({}, 'darwin', '/Users/a')).toBe(join('/Users/a', 'Library', 'Caches', 'factorflow'));
    expect(cacheFolder({ LOCALAPPDATA: '/l' }, 'win32', '/u')).toBe(join('/l', 'factorflow', 'Cache'));
  });

  it('keeps the entries of several processes, whole', async () => {
    const [one, other] = [new TunerCache(join(folder, 'kept')), new TunerCache(join(folder, 'kept'))];
    expect(await one.keep('a', tuned)).toBeUndefined();
    expect(await other.keep('b', { ...tuned, variant: 'tiled8-f32' })).toBeUndefined();
    expect(await one.find('a')).toEqual(tuned);
    expect(await one.find('b')).toMatchObject({ variant: 'tiled8-f32' });
    expect(await one.find('toString')).toBeUndefined();
    expect(readdirSync(join(folder, 'kept'))).toEqual(['tuned-kernels.json']);
  });

  it('is cleared of what killed processes have left, and not of what is written now', async () => {
    const cache = new TunerCache(join(folder, 'cleared'));
    await cache.keep('a', tuned);
    const [left, busy] = [`${cache.file}.left`, `${cache.file}.busy`];
    for (const path of [left, busy]) writeFileSync(path, '');
    const then = Date.now() / 1000 - 3600;
    utimesSync(left, then, then);
    await cache.keep('b', tuned);
    expect([existsSync(left), existsSync(busy)]).toEqual([false, true]);
  });

  it.each([
    ['cut short', (text: string) => text.slice(0, 40)],
    ['empty', () => ''],
    ['of something else', () => '{"entries":{"a":{"variant":"x","reason":"y"}}}'],
    ['null', () => 'null'],
    ['with entries that are none', (text: string) => text.replace('"variant": "tensor"', '"variant": 7')],
    ['of another version', (text: string) => text.replace(/"version": "\S+ /, '"version": "0.0.1 ')],
  ])('that is %s counts as none, and is written anew', async (what, damage) => {
    const cache = new TunerCache(join(folder, what));
    await cache.keep('a', tuned);
    writeFileSync(cache.file, damage(readFileSync(cache.file, 'utf8')));
    expect(await cache.find('a')).toBeUndefined();
    expect(await cache.keep('a', tuned)).toBeUndefined();
    expect(await cache.find('a')).toEqual(tuned);
  });

  it('is another one for other kernels', async () => {
    await new TunerCache(join(folder, 'versions'), '1 aaaa').keep('a', tuned);
    expect(await new TunerCache(join(folder, 'versions'), '1 bbbb').find('a')).toBeUndefined();
    expect(readFileSync(await written(), 'utf8')).toMatch(/"version": "\d+\.\d+\.\d+ [0-9a-f]{16}"/);
    expect(Object.keys(kernelTexts).length).toBeGreaterThan(10);

    async function written() {
      const cache = new TunerCache(join(folder, 'own version'));
      await cache.keep('a', tuned);
      return cache.file;
    }
  });

  it('that cannot be written causes a note only', async () => {
    writeFileSync(join(folder, 'a file'), '');
    const cache = new TunerCache(join(folder, 'a file', 'below'));
    expect(await cache.keep('a', tuned)).toMatch(/could not be kept in .*FACTORFLOW_CACHE_DIR/);
    expect(await cache.find('a')).toBeUndefined();
    const { measure } = measuring(() => 1);
    expect(await new KernelTuner(tensorGpu, cache).tune(problem, brief, measure)).toMatchObject({
      variant: 'tensor-fused-short64',
      note: expect.stringContaining('could not be kept'),
    });
  });
});
