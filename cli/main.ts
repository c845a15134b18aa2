#!/usr/bin/env node
import { tooOldNode } from '../engine/node-version.ts';

// Loads no other module before this check, since older versions could not parse it.
const problem = tooOldNode(process.versions.node);
if (problem === undefined) {
  const argv = process.argv.slice(2);
  const { quickAnswer } = await import('./quick-answer.ts');
  const answer = await quickAnswer(argv);
  if (answer === undefined) {
    // Sources are not what is installed.
    if (import.meta.url.endsWith('.js')) (await import('./keep-compiled.ts')).keepCompiled();
    process.exitCode = await (await import('./run-cli.ts')).runCli(argv);
  } else process.stdout.on('error', () => {}).write(`${answer}\n`);
} else {
  process.stderr.write(`factorflow ${problem}\n`);
  process.exitCode = 2;
}
