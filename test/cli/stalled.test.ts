/**
 * A process that was asked to end does end, even if its main thread is blocked and receives no further
 * signals.
 */
import { describe, expect, it } from 'vitest';
import { ratings, start, temporariesIn, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();

describe.skipIf(process.platform === 'win32')('a main thread in work that cannot be cut', () => {
  it('does not keep the process after a signal', async () => {
    const block = `data:text/javascript,${encodeURIComponent(
      `process.on('SIGTERM', () => setTimeout(() => { process.stderr.write('blocked'); for (;;); }, 1));
       setInterval(() => process.listenerCount('SIGTERM') > 1 && process.stderr.write('ready'), 50).unref();`,
    )}`;
    const args = ['train', ratings, '--rank', '64', '--max-iter', '1000', '--model-dir', `${folder}/model`];
    const run = start([...args, '--device', 'cpu', '--quiet'], { nodeArgs: ['--import', block] });
    await run.stderrMatches(/ready/);
    run.child.kill('SIGTERM');
    await run.stderrMatches(/blocked/);
    expect(await run.outcome).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(temporariesIn(folder)).toEqual([]);
  });
});
