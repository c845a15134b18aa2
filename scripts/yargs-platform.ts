/**
 * The surroundings of yargs in the bundled command, in place of its own lib/platform-shims/esm.mjs:
 * without the layout of help, translations and Intl.Segmenter, which take 65 of its 75 ms to load. Help texts
 * are made at build time, where yargs runs whole, and its errors are English in both.
 */
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { format } from 'node:util';
import Parser from 'yargs-parser';

const emptyLayout = { div: () => {}, span: () => {}, toString: () => '' };

export default {
  assert: { notStrictEqual: () => {}, strictEqual: () => {} },
  cliui: () => emptyLayout,
  findUp: () => undefined,
  getEnv: (name: string) => process.env[name],
  getCallerFile: () => '',
  getProcessArgvBin: () => '',
  inspect: String,
  mainFilename: '',
  Parser,
  path: { basename, dirname, extname, join, relative, resolve },
  process: {
    argv: () => process.argv,
    cwd: () => process.cwd(),
    emitWarning: () => {},
    execPath: () => process.execPath,
    exit: (code: number) => process.exit(code),
    nextTick: process.nextTick,
    stdColumns: null,
  },
  readFileSync: () => '',
  readdirSync: () => [],
  require: () => undefined,
  stringWidth: (text: string) => text.length,
  y18n: {
    __: format,
    __n: (one: string, many: string, count: number, ...values: unknown[]) =>
      format(count === 1 ? one : many, count, ...values),
    getLocale: () => 'en',
    setLocale: () => {},
    updateLocale: () => {},
  },
};
