/** An email as the Core compares it. */
export function normaliseEmail(email: string): string {
  return email.trim().toLowerCase();
}
