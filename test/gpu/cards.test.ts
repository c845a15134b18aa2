/** Cards as the files of a Linux system show them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { findCards, readNvidia, oneAtATime } from '../../gpu/cards/find-cards.ts';
import { withCard } from '../../gpu/gpu-thread.ts';

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function rootWith(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'cards-'));
  roots.push(root);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

const bus = 'sys/bus/pci/devices';

describe('the cards of a machine', () => {
  it('are those whose device files are here, by address', () => {
    const root = rootWith({
      'proc/driver/nvidia/gpus/0000:87:00.0/information': 'Model: \t\t NVIDIA H200\nDevice Minor: \t 1\n',
      'proc/driver/nvidia/gpus/0000:06:00.0/information': 'Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n',
      'proc/driver/nvidia/gpus/0000:03:00.0/information': 'Model: \t\t NVIDIA H200\nDevice Minor: \t 2\n',
      'dev/nvidia0': '',
      'dev/nvidia1': '',
      [`${bus}/0000:01:00.0/vendor`]: '0x1a03\n',
      [`${bus}/0000:06:00.0/numa_node`]: '-1\n',
      [`${bus}/0000:87:00.0/numa_node`]: '1\n',
    });
    expect(findCards('nvidia', 'linux', root)).toEqual([
      { address: '0000:06:00.0', vendor: 'nvidia' },
      { address: '0000:87:00.0', vendor: 'nvidia', socket: 1 },
    ]);
  });

  it('are of one vendor, and of drivers with render nodes too', () => {
    const root = rootWith({
      [`${bus}/0000:00:02.0/vendor`]: '0x8086\n',
      [`${bus}/0000:00:02.0/drm/renderD128/dev`]: '',
      [`${bus}/0000:03:00.0/vendor`]: '0x1002\n',
      [`${bus}/0000:03:00.0/drm/renderD129/dev`]: '',
      [`${bus}/0000:04:00.0/vendor`]: '0x1002\n',
      [`${bus}/0000:04:00.0/drm/renderD130/dev`]: '',
      'dev/dri/renderD128': '',
      'dev/dri/renderD129': '',
    });
    expect(findCards('amd', 'linux', root)).toEqual([{ address: '0000:03:00.0', vendor: 'amd' }]);
    expect(findCards('nvidia', 'linux', root)).toEqual([]);
    expect(findCards('amd', 'darwin', root)).toBeUndefined();
  });
});

describe('the memory that is used', () => {
  const cards = [
    { address: '0000:06:00.0', vendor: 'nvidia' },
    { address: '0000:87:00.0', vendor: 'nvidia' },
  ];

  it('is read from the output of nvidia-smi, by address', () => {
    expect(readNvidia('00000000:87:00.0, 524\n00000000:06:00.0, 3\n', cards)).toEqual([
      3 * 2 ** 20,
      524 * 2 ** 20,
    ]);
  });

  it('must be reported for every card', () => {
    expect(() => readNvidia('00000000:87:00.0, [N/A]\n00000000:06:00.0, 3\n', cards)).toThrow(
      /cannot be distinguished: nvidia-smi does not report the memory used on 0000:87:00\.0/,
    );
  });
});

describe.runIf(process.platform === 'linux')('work of one name', () => {
  it('is done by one at a time, also after a failure', async () => {
    const seen: string[] = [];
    const work = (name: string) =>
      oneAtATime('factorflow-test', async () => {
        seen.push(name);
        await setImmediate();
        seen.push(name);
        if (name === 'a') throw new Error('no');
      });
    await Promise.allSettled(['a', 'b', 'c'].map(work));
    expect(seen.filter((name, at) => name === seen[at - 1])).toHaveLength(3);
  });

  it('waits for another process, and goes on when that was killed', async () => {
    const file = fileURLToPath(new URL('../../gpu/cards/find-cards.ts', import.meta.url));
    const other = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { oneAtATime } from ${JSON.stringify(file)}; await oneAtATime('factorflow-test', async () => { console.log('held'); await new Promise(() => setInterval(() => {}, 1000)); });`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    await once(other.stdout, 'data');
    let killed = false;
    const done = oneAtATime('factorflow-test', async () => killed);
    await setTimeout(200);
    killed = other.kill('SIGKILL');
    expect(await done).toBe(true);
  });
});

describe('a card', () => {
  it('is named by the environment while it is opened, one at a time', async () => {
    const before = process.env.DRI_PRIME;
    const seen: (string | undefined)[] = [];
    const open = async () => {
      seen.push(process.env.DRI_PRIME);
      await setImmediate();
      seen.push(process.env.DRI_PRIME);
    };
    const failing = withCard('0000:06:00.0', () => Promise.reject(new Error('no')));
    const second = withCard('0000:07:00.0', open);
    const third = withCard('0000:08:00.1', open);
    await expect(failing).rejects.toThrow('no');
    await Promise.all([second, third]);
    expect(seen).toEqual(['pci-0000_07_00_0', 'pci-0000_07_00_0', 'pci-0000_08_00_1', 'pci-0000_08_00_1']);
    expect(process.env.DRI_PRIME).toBe(before);
  });
});
