/** doctor with flags, on the software adapter of the tests. */
import { describe, expect, it } from 'vitest';
import { checkKernelsOf } from '../../../cli/doctor/check-kernels.ts';
import { devicesFor } from '../../../api/devices/checked-card.ts';
import { DeviceLostError } from '../../../engine/errors.ts';
import type { EventSink } from '../../../engine/events.ts';
import type { Task } from '../../../engine/task.ts';
import { isDeep } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { refusals, argv, fails, objectOf, start } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import { randomRatings } from '../../support/ratings.ts';

describe('doctor --check-kernels', () => {
  const checks = [
    { name: 'one', variant: 'a' },
    { name: 'one', variant: 'b' },
    { name: 'other', variant: 'a' },
  ];
  const kernels = ['one', 'other', 'tensor'];
  const spans = [
    { row: 'tasks', name: 'check-kernels', start: 0, milliseconds: 10 },
    { row: 'compiling', name: 'one', start: 1, milliseconds: 4 },
    { row: 'compiling', name: 'two', start: 2, milliseconds: 4 },
    { row: 'passes', name: 'check', start: 5, milliseconds: 2 },
  ];

  type Outcome = (
    check: number,
    place: string,
  ) =>
    | { readonly error: number; readonly limit: number }
    | Promise<{ readonly error: number; readonly limit: number }>;

  const gpu = (place: `gpu:${number}`, outcome: Outcome) => ({
    info: {
      place,
      kind: 'gpu',
      parallelism: 1,
      inOrder: true,
      wholePasses: true,
      ownMemory: true,
      capacityBytes: null,
      strideStep: 16,
      description: 'Card; f16',
    } as const,
    run: async ({ params }: Task) => ({
      metrics: { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 10 },
      values: params.check === undefined ? { checks, kernels } : await outcome(params.check as number, place),
      spans,
    }),
  });

  const card = (outcome: Outcome, most = 1) => ({
    gpu: gpu('gpu:0', outcome),
    most,
    open: async (number: number) => gpu(`gpu:${number}`, outcome),
  });

  function recorded() {
    const notes: string[] = [];
    const controller = new AbortController();
    const onEvent: EventSink = (event) => void (event.type === 'note' && notes.push(event.text));
    return { notes, controller, context: { signal: controller.signal, onEvent } };
  }

  it('has a line for each kernel with the error nearest to its limit, and reports it as soon as the kernel is done', async () => {
    const { notes, context } = recorded();
    const { text, exitCode, json } = await checkKernelsOf(
      card((check) => ({ error: check * 1e-6, limit: 1e-4 })),
      {},
      context,
    );
    expect(text).toMatch(
      /^ {2}Card; f16\n {2}one {6}2 checks, all good {2}largest error 1\.0e-6 of 1\.0e-4\n {2}other {4}1 check, all good {3}largest error 2\.0e-6 of 1\.0e-4\n {2}[\d.]+ s on 1 device of the card: 50% compiling, 10% running, 40% comparing$/,
    );
    expect(notes).toEqual([
      'one: 2 checks, all good, largest error 1.0e-6 of 1.0e-4',
      'other: 1 check, all good, largest error 2.0e-6 of 1.0e-4',
    ]);
    expect(exitCode).toBeUndefined();
    expect(json).toMatchObject({
      command: 'doctor',
      adapter: 'Card; f16',
      devices: 1,
      cancelled: false,
      total: 3,
      checks: [{ kernel: 'one', variant: 'a', error: 0, limit: 1e-4, failed: false }, {}, {}],
    });
    const [{ seconds }] = json.checks as { seconds: Record<string, number> }[];
    expect(seconds.compile).toBeCloseTo(0.005, 9);
    expect(seconds.run).toBeCloseTo(0.001, 9);
    expect(seconds.reference).toBeCloseTo(0.004, 9);
  });

  it('names failing checks at once, and the exit code is 5', async () => {
    const { notes, context } = recorded();
    const { text, exitCode, json } = await checkKernelsOf(
      card((check) => {
        if (check === 2) throw new Error('kernel other: line 7: no such type\nmore');
        return { error: check === 1 ? NaN : 1e-3, limit: 1e-4 };
      }),
      {},
      context,
    );
    expect(exitCode).toBe(5);
    expect(text).toMatch(
      /one +2 checks, 2 FAILED\n +a: error 1\.0e-3, at most 1\.0e-4\n +b: error not finite, at most 1\.0e-4\n +other +1 check, 1 FAILED\n +a: kernel other: line 7: no such type\n/,
    );
    expect(notes[0]).toBe('FAILED one, a: error 1.0e-3, at most 1.0e-4');
    expect(notes).toContain('FAILED other, a: kernel other: line 7: no such type');
    expect(JSON.parse(JSON.stringify(json)).checks.map((check: { failed: boolean }) => check.failed)).toEqual(
      [true, true, true],
    );
  });

  it('checks on several devices at the same time', async () => {
    const { context } = recorded();
    const places = new Set<string>();
    const both = Promise.withResolvers<void>();
    const { json } = await checkKernelsOf(
      card(async (_, place) => {
        places.add(place);
        if (places.size === 2) both.resolve();
        await both.promise;
        return { error: 0, limit: 1 };
      }, 2),
      {},
      context,
    );
    expect([...places].sort()).toEqual(['gpu:0', 'gpu:1']);
    expect(json).toMatchObject({
      devices: 2,
      checks: [{ variant: 'a' }, { variant: 'b' }, { kernel: 'other' }],
    });
  });

  it('goes on with the devices that open', async () => {
    const { notes, context } = recorded();
    const refusing = {
      ...card(() => ({ error: 0, limit: 1 }), 2),
      open: () => Promise.reject(new Error('out of memory')),
    };
    expect((await checkKernelsOf(refusing, {}, context)).json).toMatchObject({
      devices: 1,
      checks: [{}, {}, {}],
    });
    expect(notes).toContain('continues with 1 of 2 devices: out of memory');
  });

  it('has the results up to Ctrl-C, with exit code 130', async () => {
    const { controller, context } = recorded();
    const { text, json, exitCode } = await checkKernelsOf(
      card((check) => {
        if (check === 0) return { error: 0, limit: 1 };
        controller.abort();
        return new Promise(() => {});
      }),
      {},
      context,
    );
    expect(exitCode).toBe(130);
    expect(text).toContain(
      '\n  one    1 check, all good  largest error 0 of 1.0e+0\n  cancelled after 1 of 3 checks\n',
    );
    expect(json).toMatchObject({ cancelled: true, total: 3, checks: [{ kernel: 'one', variant: 'a' }] });
    expect(json.checks).toHaveLength(1);
  });

  it('checks the kernels that are named', async () => {
    const { context } = recorded();
    const { json } = await checkKernelsOf(
      card(() => ({ error: 0, limit: 1 })),
      { kernels: ['other'] },
      context,
    );
    expect(json.checks).toMatchObject([{ kernel: 'other', variant: 'a' }]);
  });

  it.each<[string, RegExp]>([
    ['othr', /there is no kernel "othr"\. Did you mean other\? The kernels are: one, other/],
    ['tensor', /--kernel tensor: Card; f16 does not admit this kernel/],
  ])('refuses the kernel %s', async (name, pattern) => {
    const { context } = recorded();
    await expect(
      checkKernelsOf(
        card(() => ({ error: 0, limit: 1 })),
        { kernels: [name] },
        context,
      ),
    ).rejects.toThrow(pattern);
  });

  it.each([1, 2])('ends with the device, of %i', async (most) => {
    const { context } = recorded();
    const lost = card(() => {
      throw new DeviceLostError('gone');
    }, most);
    await expect(checkKernelsOf(lost, {}, context)).rejects.toBeInstanceOf(DeviceLostError);
  });

  it('takes three for four cores, and half of them where the adapter computes on the processor', () => {
    expect([
      devicesFor(1, false),
      devicesFor(2, true),
      devicesFor(4, false),
      devicesFor(16, false),
      devicesFor(128, false),
      devicesFor(8, true),
    ]).toEqual([1, 1, 3, 12, 12, 4]);
  });
});

describe.skipIf(noGpu)('doctor --check-kernels on an adapter', () => {
  it.runIf(isDeep)('checks one kernel on two devices and reports the use of its time', async () => {
    const { code, stdout } = await start(
      argv`doctor --check-kernels --kernel to-half,unpadded-rows --workers 2 --json --quiet`,
    ).outcome;
    expect(code).toBe(0);
    const { checks, devices, cancelled } = objectOf(stdout) as {
      devices: number;
      cancelled: boolean;
      checks: { kernel: string; seconds: { compile: number; run: number; reference: number } }[];
    };
    expect([devices, cancelled]).toEqual([2, false]);
    expect(new Set(checks.map(({ kernel }) => kernel))).toEqual(new Set(['to-half', 'unpadded-rows']));
    for (const { seconds } of checks) expect(Math.min(seconds.run, seconds.reference)).toBeGreaterThan(0);
    // A variant is compiled once for all its checks.
    expect(checks.filter(({ seconds }) => seconds.compile > 0).length).toBeGreaterThan(0);
  });

  it('prints the summary of what was checked when it is cancelled', async () => {
    const { child, outcome, stderrMatches } = start(
      argv`doctor --check-kernels --kernel to-half,sgd-tiles --json`,
    );
    await stderrMatches(/^to-half: 2 checks, all good/m);
    child.kill('SIGINT');
    const { code, stdout, stderr } = await outcome;
    expect(code).toBe(130);
    expect(stderr).not.toMatch(/check-kernels: finished/);
    const { checks, cancelled, total } = objectOf(stdout) as {
      checks: object[];
      cancelled: boolean;
      total: number;
    };
    expect(cancelled).toBe(true);
    expect(checks.length).toBeGreaterThanOrEqual(2);
    expect(checks.length).toBeLessThan(total);
  });
});

describe('doctor', () => {
  it.each(refusals`
    --rank 8 | --rank acts only with --tune
    --tune --check-kernels | exclude each other
    --tune --rank 8,0 | --rank must be whole numbers from 1 to 4096
    --kernel top-n | --kernel acts only with --check-kernels
    --tune --workers 2 | --workers acts only with --check-kernels
    some.parquet | unknown argument "some\.parquet"\. Give ratings with --tune
  `)('refuses %j', async (flags, pattern) => {
    await fails(2, pattern, 'doctor', ...flags);
  });
});

const folder = temporaryFolder();

describe.skipIf(noGpu)('doctor --tune', () => {
  it('reports the variants, and plans take the fastest from then on', async () => {
    const env = { FACTORFLOW_CACHE_DIR: mkdtempSync(join(tmpdir(), 'factorflow-cache-')) };
    const file = join(folder, 'few.csv');
    writeFileSync(
      file,
      `user,item,rating\n${randomRatings(5, 20, 15, 150)
        .map(({ user, item, rating }) => `${user},${item},${rating}`)
        .join('\n')}\n`,
    );
    const tuned = await start(['doctor', '--tune', '--rank', '4', file, '--quiet', '--json'], { env })
      .outcome;
    expect(tuned.code).toBe(0);
    const { adapter, tunings, data } = objectOf(tuned.stdout) as {
      adapter: string;
      data: object;
      tunings: { side: string; variant: string; reason: string; times: object[] }[];
    };
    expect(adapter).toMatch(/^swiftshader.*computes on the processor/);
    expect(data).toMatchObject({ users: 20, items: 15, ratings: expect.any(Number) });
    expect(tunings.map(({ side }) => side)).toEqual(['users', 'items']);
    const plan = await start(['plan', file, '--rank', '4', '--device', 'gpu', '--json', '--quiet'], { env })
      .outcome;
    const planned = objectOf(plan.stdout).plan as PhysicalPlan;
    for (const { side, variant, reason } of tunings) {
      expect(planned.choices[side]).toMatchObject({ variant });
      expect(stageNamed(planned, `update-${side}`).reasons?.join()).toContain(reason);
    }
  });

  it('prints the variants, and a cache that cannot be written is a note', async () => {
    const occupied = join(folder, 'occupied');
    writeFileSync(occupied, '');
    const file = join(folder, 'fewer.csv');
    writeFileSync(file, 'user,item,rating\n1,1,3\n1,2,4\n2,1,5\n');
    const { code, stdout } = await start(['doctor', '--tune', '--rank', '2', file, '--quiet'], {
      env: { FACTORFLOW_CACHE_DIR: occupied },
    }).outcome;
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /rank 2, users: 2 rows, 3 ratings, by the GPU's clock\n( +\S+ .*\n)* +\S+ +[\d.]+ ms +[\d.]+ G ratings\/s  chosen\n/,
    );
    expect(stdout).toMatch(/could not be kept in .*FACTORFLOW_CACHE_DIR names another folder/);
  });
});
