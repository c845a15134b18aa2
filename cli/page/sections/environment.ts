import { publicPath } from '../../../engine/errors.ts';
import { formatBytes } from '../../../engine/format.ts';
import { describeMachine } from '../../../api/inspect/machine.ts';
import type { Section } from '../section.ts';

/** The machine, the versions, and the command to run again. */
export function environmentSection(argv: readonly string[], adapter: string | null): Section {
  const { versions, os, cpu, memory, webAssembly } = describeMachine();
  return {
    heading: 'Run it again',
    code: commandLine(argv),
    facts: [
      ['made', `${new Date().toISOString().slice(0, 19).replace('T', ' ')} UTC`],
      ...Object.entries(versions).map(([name, version]) => [name, version] as const),
      ['system', os],
      ['processor', `${cpu.model}, ${cpu.usable} of ${cpu.cores} threads`],
      ['memory', formatBytes(memory.limit ?? memory.total)],
      ['GPU', adapter],
      ['WebAssembly', webAssembly],
    ],
  };
}

/** The command line, quoted for a shell; credentials and queries in addresses are removed. */
function commandLine(argv: readonly string[]): string {
  return ['factorflow', ...argv.map(publicWord)]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

/** A word without the credentials of its address, which can follow a flag and "=". */
function publicWord(word: string): string {
  const [, flag = '', value = word] = /^(--[\w-]+=)(.*)$/s.exec(word) ?? [];
  return flag + publicPath(value);
}
