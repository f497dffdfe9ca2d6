/**
 * Modulo each of these, the primes of the flawed generator are powers of 65537, and so their products (Nemec et al.,
 * CCS 2017, §2).
 */
const primes = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113,
  127, 131, 137, 139, 149, 151, 157, 163, 167,
] as const;

const fingerprints = primes.map((prime) => ({ prime: BigInt(prime), residues: powersOf65537(prime) }));

/**
 * Tells whether an RSA modulus bears the fingerprint of CVE-2017-15361 (ROCA): its private key can be computed from it.
 * About one sound modulus in 240 million bears it by chance, and refusing that one costs a rotation.
 */
export function isRocaModulus(modulus: bigint): boolean {
  return fingerprints.every(({ prime, residues }) => residues.has(Number(modulus % prime)));
}

/** The subgroup that 65537 generates modulo a prime. */
function powersOf65537(prime: number): ReadonlySet<number> {
  const powers = new Set<number>();
  for (let power = 1; !powers.has(power); power = (power * (65537 % prime)) % prime) powers.add(power);
  return powers;
}
