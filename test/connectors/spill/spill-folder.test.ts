import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SpillFolder } from '../../../connectors/spill/spill-folder.ts';
import { UsageError } from '../../../engine/errors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const parent = temporaryFolder();

describe('a spill folder', () => {
  it('is made with its first file and goes with everything in it', async () => {
    const folder = new SpillFolder(parent);
    await folder.requireRoom(0);
    expect(readdirSync(parent)).toEqual([]);
    const [first, second] = [await folder.newFile(), await folder.newFile()];
    expect(first).not.toBe(second);
    writeFileSync(first, 'x');
    expect(readdirSync(parent)).toHaveLength(1);
    await folder.close();
    expect(readdirSync(parent)).toEqual([]);
    await folder.close();
  });

  it('makes the folder that it is given, which goes with it where it is empty', async () => {
    const folder = new SpillFolder(join(parent, 'made', 'here'));
    writeFileSync(await folder.newFile(), 'x');
    await folder.close();
    expect(readdirSync(join(parent, 'made'))).toEqual([]);
    const other = new SpillFolder(join(parent, 'made'));
    await other.open();
    writeFileSync(join(parent, 'made', 'note'), '');
    await other.close();
    expect(readdirSync(join(parent, 'made'))).toEqual(['note']);
    rmSync(join(parent, 'made'), { recursive: true });
  });

  it('is refused where nothing can be written', async ({ skip }) => {
    // Root may ignore the rights of a folder, but not the kernel's own rights.
    const own = process.getuid?.() !== 0;
    if (!own && process.platform !== 'linux') return skip('root can write to every folder here');
    const closed = own ? join(parent, 'closed') : '/sys/kernel';
    if (own) mkdirSync(closed, { mode: 0o500 });
    await expect(new SpillFolder(closed).open()).rejects.toThrow(
      /^spillDir .* cannot be written to \(E\w+\)/,
    );
    if (own) rmSync(closed, { recursive: true });
  });

  it('is refused where there is no folder', async () => {
    writeFileSync(join(parent, 'file'), '');
    for (const path of [join(parent, 'file'), join(parent, 'file', 'below')]) {
      await expect(new SpillFolder(path).open()).rejects.toThrow(/^spillDir .* is not a folder/);
      await expect(new SpillFolder(path).open()).rejects.toBeInstanceOf(UsageError);
    }
    rmSync(join(parent, 'file'));
  });

  it('is refused where the system has no new folders, at once', async ({ skip }) => {
    if (process.platform !== 'linux') return skip('there is no /proc here');
    for (const path of ['/proc', '/proc/none', '/proc/none/below'])
      await expect(new SpillFolder(path).open()).rejects.toThrow(`spillDir ${path} takes no new folders`);
  });

  it('clears folders of processes that are no more, and leaves those of running ones and of others', async () => {
    const own = new SpillFolder(parent);
    const name = (await own.open()).split('/').at(-1) as string;
    const [, , host] = name.split('-');
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    // The number of a process that ended, the number of this one with another start, a host that is not this
    // one, no number.
    const gone = [
      `.factorflow-spill.tmp-${host}-${dead}-1-0`,
      ...(process.platform === 'linux' ? [`.factorflow-spill.tmp-${host}-${process.pid}-1-0`] : []),
    ];
    const kept = [
      `.factorflow-spill.tmp-0123456789ab-${dead}-1-0`,
      `.factorflow-spill.tmp-${host}-x-1-0`,
      'notes',
    ];
    for (const one of [...gone, ...kept]) {
      mkdirSync(join(parent, one));
      writeFileSync(join(parent, one, '0'), 'x');
    }
    const next = new SpillFolder(parent);
    const nextName = (await next.open()).split('/').at(-1) as string;
    expect(readdirSync(parent).sort()).toEqual([...kept, name, nextName].sort());
    await own.close();
    await next.close();
    for (const one of kept) rmSync(join(parent, one), { recursive: true });
  });
});
