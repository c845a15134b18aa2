/**
 * Defines the symbols of explicit resource management, which Safari and older versions of Chrome and Firefox
 * lack. Loaded before classes that have such methods.
 */
for (const name of ['dispose', 'asyncDispose'])
  if (!(name in Symbol)) Object.defineProperty(Symbol, name, { value: Symbol.for(`Symbol.${name}`) });
