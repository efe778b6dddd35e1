"""Every call of the contract, once: functions that give a request, or the steps of several. Clients carry them out."""
