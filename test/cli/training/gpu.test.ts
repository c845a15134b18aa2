/** --device gpu, on the software adapter of the tests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { plantedRatings } from '../../support/planted.ts';
import { randomRatings, type Triple } from '../../support/ratings.ts';
import { argv, factorflow, objectOf, ratings, start, trainedModel } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

function writeRatings(name: string, rows: readonly Triple[]): string {
  const file = join(folder, name);
  writeFileSync(
    file,
    `user,item,rating\n${rows.map(({ user, item, rating }) => `${user},${item},${rating}`).join('\n')}\n`,
  );
  return file;
}

const SOFTWARE =
  /^factorflow: warning: the GPU swiftshader\S* computes on the processor, far slower than device cpu: it serves for tests only\n/;

describe.skipIf(noGpu)('--device gpu', () => {
  it('evaluates as the CPU does, and warns of a software adapter even when quiet', async () => {
    const evaluated = async (device: string) => {
      const args = argv`evaluate ${await trainedModel()} ${ratings} --device ${device} --quiet --json`;
      const { code, stdout, stderr } = await factorflow(...args);
      expect(code).toBe(0);
      return { stderr, ...(objectOf(stdout) as { metrics: { rmse: number }; pairs: number }) };
    };
    const [expected, got] = [await evaluated('cpu'), await evaluated('gpu')];
    expect(expected.stderr).toBe('');
    expect(got.stderr).toMatch(SOFTWARE);
    expect(got.pairs).toBe(expected.pairs);
    expect(got.metrics.rmse).toBeCloseTo(expected.metrics.rmse, 4);
  });

  it('trains: a line names the device once it is open, the JSON the adapter, and the model is like any other', async () => {
    const file = writeRatings('few.csv', randomRatings(62, 40, 30, 600));
    const flags = argv`train ${file} --rank 4 --max-iter 2 --test-fraction 0.1 --json --model-dir`;
    const { code, stdout, stderr } = await factorflow(...flags, join(folder, 'small'), '--device', 'gpu');
    expect(code).toBe(0);
    expect(stderr.replace(SOFTWARE, '')).toMatch(
      /^read: started(.*\n)+GPU: swiftshader.*\n(.*\n)*sort: started/m,
    );
    const [got, expected] = [
      objectOf(stdout),
      objectOf(
        (await factorflow(...flags, join(folder, 'same'), '--device', 'cpu', '--solver', 'cholesky')).stdout,
      ),
    ];
    expect(got).toMatchObject({
      command: 'train',
      algorithm: 'als',
      device: 'gpu',
      adapter: expect.stringMatching(/^swiftshader/),
    });
    expect(expected).toMatchObject({ device: 'cpu', adapter: null });
    expect(Object.keys(got)).toEqual(Object.keys(expected));
    expect(got.testRmse).toBeCloseTo(expected.testRmse as number, 3);
  });

  it('plans with the adapter, its limits and one task a pass', async () => {
    const shape = argv`plan --users 480189 --items 17770 --ratings 99072112 --rank 64 --device gpu`;
    const { code, stdout } = await factorflow(...shape);
    expect(code).toBe(0);
    expect(stdout).toMatch(/device +gpu:0: swiftshader.*; its memory is not known\n +device +cpu: /);
    expect(stdout).toMatch(/\n +7 +update-users +round +gpu:0 +update \S+ cg\(6, then 4\) +1 x 1 +1 /);
    // Ratings that do not fit on the card are staged. A side larger than one buffer is stored in parts.
    const tight = await factorflow(...shape, '--device-memory', '1GiB');
    expect([tight.code, tight.stderr]).toEqual([0, expect.any(String)]);
    expect(tight.stdout).toMatch(/staged from the host/);
    const large = await factorflow(
      ...argv`plan --users 9000000 --items 17770 --ratings 99072112 --rank 64 --device gpu --quiet`,
    );
    expect(large.code).toBe(0);
    expect(large.stdout).toMatch(/rejected: X whole.* has buffers beyond the 1\.0 GiB that gpu:0 binds/);
  });

  it('trains by SGD, saves, and plans its schedules', async () => {
    const file = writeRatings('planted.csv', plantedRatings(4, 60, 40, 1500));
    const train = argv`train ${file} --algorithm sgd --rank 4 --biases --max-iter 3 --test-fraction 0.1 --json
      --quiet --model-dir`;
    const { code, stdout } = await factorflow(
      ...argv`${train} ${join(folder, 'sgd')} --device gpu --precision f32`,
    );
    expect(code).toBe(0);
    const [got, expected] = [
      objectOf(stdout),
      objectOf((await factorflow(...train, join(folder, 'sgd-cpu'), '--device', 'cpu')).stdout),
    ];
    expect(got).toMatchObject({
      algorithm: 'sgd',
      device: 'gpu',
      adapter: expect.stringMatching(/^swiftshader/),
    });
    expect(Math.abs((got.testRmse as number) - (expected.testRmse as number))).toBeLessThan(0.02);
    const shape = argv`plan --users 480189 --items 17770 --ratings 20000000 --rank 64 --algorithm sgd
      --no-biases --device gpu --quiet`;
    expect((await factorflow(...shape, '--schedule', 'wavefront')).stdout).toMatch(
      /\n +6 +wave-order +round +cpu .*\n +7 +sgd-epoch +round +gpu:0 +sgd-waves f16 +512 x 256 +1 /,
    );
    expect((await factorflow(...shape, '--schedule', 'blocks')).stdout).toMatch(
      /\n +3 +cut-blocks +load +cpu (.*\n)* +9 +sgd-epoch +round +gpu:0 +sgd-tiles f16 +4 x 1 +4 .* none\n/,
    );
    // Ratings that do not fit as a whole may fit block by block, but the rows must fit.
    const staged = await factorflow(...shape, '--device-memory', '500MiB');
    expect(staged.stdout).toMatch(
      /schedule auto: blocks, since schedule tile does not fit the GPU\n.*\n.*blocks of ratings are staged, two at a time(.*\n)* +rejected: schedule tile needs 67\d\.\d MiB/,
    );
    const refused = await factorflow(...shape, '--device-memory', '300MiB');
    expect(refused.code).toBe(4);
    expect(refused.stderr).toMatch(
      /the factors and ratings need 3\d\d\.\d MiB \(\d+ bytes\) but device gpu:0 has 300\.0 MiB/,
    );
  });

  it('gathers in the precision asked for by any algorithm', async () => {
    const { code, stdout } = await factorflow(
      ...argv`plan ${ratings} --algorithm auto --precision f16 --device gpu --quiet`,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/update-users: kernel tiled\d-f16 .*θ in float16/);
  });

  it('without an adapter is a usage error that names the packages to install', async () => {
    const { code, stdout, stderr } = await start(
      ['train', ratings, '--model-dir', join(folder, 'none'), '--device', 'gpu', '--quiet'],
      { env: { VK_DRIVER_FILES: '/dev/null' } },
    ).outcome;
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /^factorflow: no GPU: WebGPU found no adapter on this machine\. .*Vulkan.* Or use device cpu\n$/,
    );
  });
});

describe.skipIf(noGpu)('Ctrl-C', () => {
  it.each([1, 2])(
    '%i times while the GPU works ends with 130, and without output of the driver',
    async (times) => {
      const file = writeRatings(`endless-${times}.csv`, randomRatings(63, 40, 30, 600));
      const { child, outcome, stderrMatches } =
        start(argv`train ${file} --rank 4 --max-iter 1000000 --device gpu --model-dir
        ${join(folder, 'endless')}`);
      await stderrMatches(/iteration 2\//);
      for (let i = 0; i < times; i++) child.kill(i === 0 ? 'SIGINT' : 'SIGTERM');
      const { code, stderr } = await outcome;
      expect(code).toBe(130);
      expect(
        stderr
          .split('\n')
          .filter((line) => !/^(factorflow|GPU|[a-z-]+|iteration [\d,]+\/1000000): /.test(line)),
      ).toEqual(['']);
    },
  );
});
